"""Write docs/assets/explorer.png: the explorer of a small bakery, in a headless browser.

    python docs/explorer_picture.py           the picture of the docs
    python docs/explorer_picture.py FOLDER    the page at 1400 and 390 px, light and dark

It needs /usr/bin/chromium and /usr/bin/chromedriver.
"""

import io
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

import numpy as np
import pandas as pd
from PIL import Image
from selenium import webdriver

import costscape as cs
from costscape.comparison import CostHistory

ASSET = Path(__file__).parent / "assets" / "explorer.png"
TASK = """
import costscape as cs

units = {"bread": "loaves", "rolls": "dozen", "temperature": "°C", "price": "EUR"}
chance = cs.Chance(lambda y, a: y - a, 0.9)


def task():
    terms = lambda y, a: 4 * (y - a).relu() + (a - y).relu()
    return cs.SeparableTask(terms, cs.Budget(total=260.0, dim=2, upper=200.0), convex=True)
"""


def bakery():
    """Two years of sales of two products."""
    rng = np.random.default_rng(0)
    days = pd.date_range("2016-01-04", periods=730, freq="D")
    weekend = np.isin(days.day_of_week, (4, 5)).astype(float)
    warm = 11 - 9 * np.cos(2 * np.pi * days.day_of_year / 365) + 3 * rng.standard_normal(730)
    price = rng.choice([2.9, 3.4, 3.9], 730)
    mean = np.stack([95 + 35 * weekend - 18 * (price - 3.4), 60 + 45 * weekend + 1.2 * warm], 1)
    Y = pd.DataFrame(mean * rng.gamma(30, 1 / 30, (730, 2)), days, ["bread", "rolls"]).round()
    X = pd.DataFrame({"temperature": warm.round(1), "price": price, "weekend": weekend}, days)
    for name in Y:
        X[f"{name} a week ago"] = Y[name].shift(7)
    return X[7:], Y[7:]


def write_models(folder):
    """The folders of two versions, the newer with a comparison."""
    names = {}
    exec(TASK, names)
    task = names["task"]()
    X, Y = bakery()
    for name, k in (("bakery", 60), ("bakery-old", 15)):
        (folder / name).mkdir()
        (folder / name / "task.py").write_text(TASK)
        model = cs.NearestNeighbours(task, k=k).fit(X, Y)
        model.save(folder / name / "model.costscape")
    methods = {
        "NearestNeighbours": cs.NearestNeighbours(task, k=60),
        "Constant": cs.Constant(task),
    }
    today = X[["bread a week ago", "rolls a week ago"]].to_numpy() * 1.1
    today *= np.minimum(1, 260 / today.sum(1, keepdims=True))
    result = cs.compare(task, X, Y, methods=methods, today=today, progress=False)
    CostHistory.of(result).write(folder / "bakery" / "comparison.json")
    return [folder / "bakery", folder / "bakery-old"]


def serve(folders):
    """A service, and its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = ["serve", *map(str, folders), "--port", str(port), "--watch", "0"]
    process = subprocess.Popen(
        [sys.executable, "-m", "costscape", *words], stderr=subprocess.DEVNULL
    )
    address = f"http://127.0.0.1:{port}/"
    while process.poll() is None:
        try:
            urllib.request.urlopen(f"{address}ready")
            return process, address
        except urllib.error.URLError:
            time.sleep(0.2)
    raise RuntimeError("The service ended.")


def browser(folder):
    options = webdriver.ChromeOptions()
    options.binary_location = "/usr/bin/chromium"
    for flag in ("headless", "no-sandbox", "disable-gpu", "hide-scrollbars"):
        options.add_argument(f"--{flag}")
    options.add_argument(f"--user-data-dir={folder}")
    service = webdriver.ChromeService("/usr/bin/chromedriver")
    return webdriver.Chrome(options=options, service=service)


def picture(driver, address, path, width, theme, height=None):
    size = {"width": width, "height": height or 900, "deviceScaleFactor": 1, "mobile": width < 600}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    media = [{"name": "prefers-color-scheme", "value": theme}]
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": media})
    driver.get(address)
    while driver.execute_script("return document.body.dataset.state") != "ready":
        time.sleep(0.1)
    if height is None:
        size["height"] = driver.execute_script("return document.documentElement.scrollHeight")
        driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    time.sleep(1.0)  # charts follow the size
    Image.open(io.BytesIO(driver.get_screenshot_as_png())).quantize(128).save(path, optimize=True)


def main():
    with tempfile.TemporaryDirectory() as place:
        process, address = serve(write_models(Path(place)))
        driver = browser(Path(place) / "profile")
        try:
            if len(sys.argv) == 1:
                picture(driver, address, ASSET, 1200, "light", 980)
                return
            for width in (1400, 390):
                for theme in ("light", "dark"):
                    path = Path(sys.argv[1]) / f"explorer-{width}-{theme}.png"
                    picture(driver, address, path, width, theme)
            for line in driver.get_log("browser"):
                print(line["message"])
        finally:
            driver.quit()
            process.terminate()
            process.wait()


if __name__ == "__main__":
    main()
