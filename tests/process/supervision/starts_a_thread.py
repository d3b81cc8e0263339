"""A module that cannot be loaded before a fork."""

import threading

threading.Thread(target=threading.Event().wait, daemon=True).start()
