"""Devices of one name are told apart by their fingerprints, and only then."""

from accelbench.core.devices import disambiguate_devices


def card(mark, **more):
    return {"hardware": "cuda", "device_name": "A card", "device_fingerprint": mark, **more}


def test_names_of_cards():
    told = disambiguate_devices([card("aaaaaaaa1"), card("bbbbbbbb2"), card(None)])
    names = [row["device_name"] for row in told]
    assert names == ["A card (device aaaaaaaa)", "A card (device bbbbbbbb)", "A card"]
    rows = [card("a"), card("a"), card(None), card("b", hardware="rocm")]
    assert disambiguate_devices(rows) == rows
    assert disambiguate_devices([card("a")], [card("b")])[0]["device_name"] == "A card (device a)"
