"""The fuzzy finder of files."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import count

from hypothesis import given
from hypothesis import strategies as st

from weft.project.path_finder import PathFinder

PATHS = ["README.md", "pages/server.py", "src/Cart.py", "src/cart_test.py", "src/deep/recart.go"]


def finder(paths: list[str]) -> PathFinder:
    return PathFinder("".join(f"{path}\0" for path in paths), clock=lambda: 0.0)


def test_names_come_before_pieces_and_pieces_before_letters() -> None:
    assert finder(PATHS).find("cart") == ["src/Cart.py", "src/cart_test.py", "src/deep/recart.go"]
    assert finder(PATHS).find("psrv") == ["pages/server.py"]
    assert finder(PATHS).find("READ") == ["README.md"]
    assert finder(PATHS).find("nothing") == []


def test_files_that_were_touched_come_first() -> None:
    touched = ["src/deep/recart.go", "README.md"]
    assert finder(PATHS).find("cart", touched)[:2] == ["src/deep/recart.go", "src/Cart.py"]


def test_a_key_that_ran_out_of_time_leaves_the_rest_to_the_next() -> None:
    many = [f"folder{number:05}/some_module_{number}.py" for number in range(20_000)]
    ticks = count()
    found = PathFinder("".join(f"{path}\0" for path in many), clock=lambda: next(ticks) * 0.005)
    last = many[-1]
    letters = "fldr1999" + "9smdl"
    seen = [last in found.find(letters[:length]) for length in range(3, len(letters) + 1)]
    assert not any(seen[:4]), "it has looked at a part only"
    assert seen[-1]


def test_a_name_that_many_have_is_found_at_the_top_too() -> None:
    many = [f"a/m{number}/setup.py" for number in range(600)]
    found = finder([*many, "setup.py", "z/setup.py.orig"]).find("setup.py")
    assert found[0] == "setup.py"
    assert finder([*(f"a/{n}/setup.cfg" for n in range(900)), "b/setup"]).find("setup")[0] == (
        "b/setup"
    )


def test_the_shortest_of_many_with_the_letters_come_first() -> None:
    many = [f"server/pages/part{number:04}/view.py" for number in range(900)]
    assert finder([*many, "spv.py"]).find("spv.")[0] == "spv.py"
    assert finder([*many, "src/pv.py"]).find("spvp")[0] == "src/pv.py"


def test_letters_in_a_name_come_before_letters_all_over_a_path() -> None:
    many = [f"scripts/r{number}.py" for number in range(300)]
    found = finder([*many, "src/deep/in/it/capture_output.py"]).find("cptr")
    assert found[:2] == ["src/deep/in/it/capture_output.py", "scripts/r0.py"]


def test_letters_in_order_do_not_bring_a_touched_file_before_a_name() -> None:
    paths = ["tests/a.py", "the/essential/store.py"]
    assert finder(paths).find("test", ["the/essential/store.py"]) == paths
    assert finder(paths).find("tess", ["the/essential/store.py"])[0] == "the/essential/store.py"


def test_a_letter_that_grows_in_lower_case_hides_no_path() -> None:
    paths = ["README.md", "src/App.tsx", "docs/İstanbul.txt"]
    for typed in ("readme", "README", "App", "istanbul", "İSTANBUL", "İst"):
        (place,) = finder(paths).find(typed)
        assert place in paths
    assert finder(paths).find("docs/İ", ["docs/İstanbul.txt"]) == ["docs/İstanbul.txt"]


def test_two_threads_may_ask_at_once() -> None:
    many = [f"folder{number:05}/some_module_{number}.py" for number in range(20_000)]
    found = finder(many)

    def ask(number: int) -> bool:
        typed = f"fldr{number}smdl" if number % 2 else f"fdr{number}mdl"
        return found.find(typed)[0] == many[number]

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(ask, range(10_000, 10_050)))


def test_each_key_looks_at_a_piece_however_late_it_is() -> None:
    ticks = count()
    found = PathFinder("".join(f"{path}\0" for path in PATHS), clock=lambda: float(next(ticks)))
    assert found.find("psrv") == ["pages/server.py"]


def test_an_empty_listing_finds_nothing() -> None:
    assert finder([]).find("a") == finder([]).find("") == []


_NAMES = st.lists(st.text("abcAB/._é", min_size=1, max_size=8), unique=True, max_size=12)


@given(_NAMES, st.text("abcAB./", min_size=1, max_size=4))
def test_whatever_fits_is_found_and_nothing_else(paths: list[str], typed: str) -> None:
    def fits(path: str) -> bool:
        if typed.lower() in path.lower():
            return True
        letters = iter(path.lower())
        return len(typed) > 2 and all(each in letters for each in typed.lower())

    assert set(finder(paths).find(typed)) == {path for path in paths if fits(path)}
