"""The browser runtime: onnxruntime-web in a real browser, driven from here, timed in the page."""

from accelbench.engines.browser.runtime import BrowserRuntime

__all__ = ["BrowserRuntime"]
