"""What the console answers, and whom it refuses."""

from __future__ import annotations


def test_the_list_is_that_of_the_command_line(browser, submit):
    first = submit()
    told = browser.get("/topologies")
    assert told.status_code == 200, told.text
    (row,) = told.json()["topologies"]
    assert (row["id"], row["state"]) == (first, "RUNNING")
    assert told.json()["reading"] == {"state": "live", "as_of": None, "reason": None}


def test_one(browser, submit):
    first = submit()
    told = browser.get("/topologies/Endless")
    assert told.status_code == 200, told.text
    assert told.json()["id"] == first
    again = browser.get("/topologies/Endless", headers={"if-none-match": told.headers["etag"]})
    assert again.status_code == 304
