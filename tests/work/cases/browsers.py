"""Browsers without a screen, as playwright, puppeteer and selenium start them: the host's chromium, with the option that /AGENTS.md advises."""

from case import Case

HEADLESS = "chromium --headless --no-sandbox --disable-gpu --virtual-time-budget=5000"
# Its script makes the text, so that a browser which only fetches the page shows nothing.
PAGE = (
    "printf '<!doctype html><title>t</title><body style=\"background:#08f\"><p id=p></p><script>document.getElementById(\"p\").textContent = "
    "[6, 7].reduce((a, b) => a * b) + \" by a script\"</script>' >page.html"
)

CASES = [
    Case("chromium runs the script of a page", f"{HEADLESS} --dump-dom file://$PWD/page.html 2>/dev/null | grep -o '[0-9]* by a script<'", PAGE, "chromium", timeout=300),
    Case("chromium makes a picture of a page that a server has",
         f"python3 -m http.server -b 127.0.0.1 8131 >/dev/null 2>&1 & server=$!; until curl -sfo /dev/null http://127.0.0.1:8131/; do kill -0 $server; sleep 0.2; done; "
         f"{HEADLESS} --screenshot=shot.png --window-size=320,200 http://127.0.0.1:8131/page.html >/dev/null 2>&1; kill $server; file shot.png | grep -o 'PNG image data, 320 x 200'",
         PAGE, "chromium curl file python3", ignored=("shot.png",), timeout=300),
]
