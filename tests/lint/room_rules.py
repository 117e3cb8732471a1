"""Holds each source of the product to its room: what it may call, whether it may hold root's type, and the table that shows it."""

import rooms
import rules
from finding import Finding
from sources import line_of

TABLE = "tests/lint/rooms.py"


def product_of(files):
    return [file for file in files if file.kind == "cpp" and file.top_directory in rules.PRODUCT_DIRECTORIES]


def sentence_about(room):
    if room.silent:
        return f"{room.path}/ runs as {room.whom} and makes no system call: {room.why}"
    return f"{room.path}/ runs as {room.whom}; what it may: {room.may} ({room.why})"


def check_rooms(files):
    """A source in a folder that no row names, and a row whose folder has no source."""
    used = set()
    for file in product_of(files):
        room = rooms.room_of(file.path)
        if room:
            used.add(room.path)
        else:
            folder = file.path.rpartition("/")[0]
            yield Finding(file.path, 1, "room", f"{folder}/ is no room of {TABLE}; move the file, or say there as whom the folder runs and what it may")
    for room in rooms.ROOMS:
        if room.path not in used:
            yield Finding(TABLE, 1, "stale-room", f"{room.path}/ holds no source; take its row out")


def check_powers(files):
    """A dangerous thing in a room that is not for it. Within its room it has files of its own: lint.py looks at these."""
    for name, pattern, _, why in rules.HOMES:
        able = ", ".join(f"{room.path}/" for room in rooms.ROOMS if name in room.powers)
        for file in product_of(files):
            room = rooms.room_of(file.path)
            if not room or name in room.powers:
                continue
            for match in pattern.finditer(file.code):
                found = match.group().strip().rstrip("( ")
                yield Finding(file.path, line_of(file.code, match.start()), "room", f"{found}: {sentence_about(room)}; {name} belongs to {able} ({why})")


def check_silence(files):
    """A system call in a room that makes none, and an exception that nobody needs."""
    known = {file.path for file in files}
    for file in product_of(files):
        room = rooms.room_of(file.path)
        if not room or not room.silent:
            continue
        allowed, _ = rules.SILENT_BUT.get(file.path, ((), ""))
        needed = set()
        for match in rules.SYSTEM_CALLS.finditer(file.code):
            call = match.group(match.lastgroup)
            if call in allowed:
                needed.add(call)
            else:
                yield Finding(file.path, line_of(file.code, match.start()), "system-call", f"{call}: {sentence_about(room)}; do it in a room above, and hand down what came of it")
        for call in allowed:
            if call not in needed:
                yield Finding("tests/lint/rules.py", 1, "stale-exception", f"{file.path} may call {call} and does not; correct SILENT_BUT")
    for path in rules.SILENT_BUT:
        if path not in known:
            yield Finding("tests/lint/rules.py", 1, "stale-exception", f"{path} is not there; correct SILENT_BUT")


def check_as_root(files):
    """Root's own type in a room that is not root."""
    for file in product_of(files):
        room = rooms.room_of(file.path)
        if not room or rooms.is_root(file.path) or room.path == rooms.HOME_OF_AS_ROOT:
            continue
        for match in rules.AS_ROOT.finditer(file.code):
            yield Finding(file.path, line_of(file.code, match.start()), "as-root",
                          f"AsRoot: {file.path} runs as {whom_of(file.path)}; what takes an AsRoot belongs to a room of root's, and hands down what came of it")


def whom_of(path):
    """As whom a file runs. A program without root lies in a room that is root."""
    return "the agent's account" if path in rooms.PROGRAMS_WITHOUT_ROOT else rooms.room_of(path).whom


def rows_of(page):
    """(line, cells) of each row of the page's table, its head first."""
    rows = []
    inside = False
    for number, line in enumerate(page.split("\n"), 1):
        if line.startswith("#"):
            if rows:
                break
            inside = line.rstrip() == rooms.HEADING
        elif inside and line.startswith("|"):
            rows.append((number, tuple(cell.strip() for cell in line.strip().strip("|").split("|"))))
        elif rows:
            break
    return rows


def check_room_table(files):
    """The page's table says something else than the rules that hold: it is what a reader takes for true."""
    page = next((file.text for file in files if file.path == rooms.PAGE), "")
    rows = rows_of(page)
    advice = "tests/lint/floors.py --table prints it"
    if not rows or rows[0][1] != rooms.COLUMNS or len(rows) < 2 or any(cell.strip("-:") for cell in rows[1][1]):
        yield Finding(rooms.PAGE, rows[0][0] if rows else 1, "room-table", f"there is no table with the head {' | '.join(rooms.COLUMNS)} under '{rooms.HEADING}'; {advice}")
        return
    wanted = {f"`{room.path}/`": rooms.row_of(room) for room in rooms.ROOMS}
    seen = []
    for line, cells in rows[2:]:
        name = cells[0]
        if name not in wanted:
            yield Finding(rooms.PAGE, line, "room-table", f"{name} is no room of {TABLE}; {advice}")
        elif name in seen:
            yield Finding(rooms.PAGE, line, "room-table", f"{name} has a row already")
        else:
            seen.append(name)
            for column, cell, right in zip(rooms.COLUMNS[1:], (*cells[1:], "", "", "")[:3], wanted[name][1:]):
                if cell != right:
                    yield Finding(rooms.PAGE, line, "room-table", f"{name}, {column}: {cell!r} is {right!r} in {TABLE}")
            if len(cells) != len(rooms.COLUMNS):
                yield Finding(rooms.PAGE, line, "room-table", f"{name}: {len(cells)} cells, and the head has {len(rooms.COLUMNS)}")
    for name in wanted:
        if name not in seen:
            yield Finding(rooms.PAGE, rows[0][0], "room-table", f"{name} has no row; {advice}")
    order = [name for name in wanted if name in seen]
    for line, cells in rows[2:]:
        if order and cells[0] in seen:
            if cells[0] != order[0]:
                yield Finding(rooms.PAGE, line, "room-table", f"{cells[0]} stands where {order[0]} does in {TABLE}: rows follow the floors, from top to bottom")
                return
            order.pop(0)


CHECKS = (check_rooms, check_powers, check_silence, check_as_root, check_room_table)
