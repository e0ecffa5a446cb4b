"""What the tests drive a browser with hears what pages complain of, want and ask."""

_PAGE = """<!doctype html><title>x</title>
<meta http-equiv="Content-Security-Policy" content="img-src 'none'">
<img src="refused.png"><script src="absent.js"></script>
<script>
console.log("said"); setTimeout(() => { throw new Error("thrown"); }); alert("asked");
</script>
"""


def test_a_tab_hears_whatever_a_page_does(tab, tmp_path):
    file = tmp_path / "page.html"
    file.write_text(_PAGE, encoding="utf-8")
    tab.go(file.as_uri())
    tab.until(lambda: any("thrown" in one for one in tab.complaints()))
    heard = " ".join(tab.complaints())
    assert all(one in heard for one in ("said", "thrown", "img-src 'none'", "ERR_FILE_NOT_FOUND"))
    assert tab.dialogs == ["asked"]
    wanted = {(tmp_path / name).as_uri() for name in ("page.html", "refused.png", "absent.js")}
    assert set(tab.asked()) == wanted
    tab.go("about:blank")
    assert (tab.complaints(), tab.dialogs) == ([], [])
