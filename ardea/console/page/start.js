/** No module: it says so where the page itself does not come up, and asks for a file that has not come once more. */

/** Milliseconds until then. */
const AGAIN = 3000;

function say(text) {
  const said = document.createElement("p");
  said.className = "notice bad";
  said.textContent = text;
  document.getElementById("main")?.replaceChildren(said);
}

addEventListener(
  "error",
  ({ target, message }) => {
    if (target.tagName === "SCRIPT") {
      say("The console has not sent the whole page. It is asked again in 3 s.");
      setTimeout(() => location.reload(), AGAIN);
    } else if (target === window && !document.getElementById("head")?.hasChildNodes()) {
      say(`This page has a fault, and cannot begin: ${message}`);
    }
  },
  true, // errors of loading do not bubble
);
