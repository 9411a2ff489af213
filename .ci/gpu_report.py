"""The report of .ci/gpu: one JSON with everything, and one page to read, both complete at any moment.

In: facts and results as they come. Out: report.json and report.md in a folder; `Report.passed` and `Report.summary`.
Both files are replaced as a whole, so that a run that is cut off leaves a report of what it did. Used by .ci/gpu.
"""

from __future__ import annotations

import json
import os
import re
import threading
import time
from pathlib import Path
from typing import Any

GOOD = ("passed", "skipped", "ran")
SHOWN_LINES, SHOWN_TESTS, SLOWEST = 20, 8, 10
PLACE = re.compile(r" \(at [^()]*:\d+\)")
"""What nbgrad's messages say of the user's line; failures that differ in nothing else are one."""
SECONDS_BETWEEN = 1.0
"""The files are written at most this often, but for the end."""


class Report:
    """What is known of a run.

    Parameters
    ----------
    folder : Path
        Gets report.json and report.md.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self._lock, self._saved = folder, threading.RLock(), 0.0
        self.content: dict[str, Any] = {"state": "starting", "facts": {}, "tests": {}, "benchmarks": {}}

    def earlier(self, path: Path, simulator: bool) -> None:
        """Take over what passed in an earlier report, so that it need not run again."""
        before = json.loads(path.read_text(encoding="utf-8"))
        if bool(before["facts"].get("simulator")) != simulator:
            raise SystemExit(f"{path} is the report of a {'GPU' if simulator else 'simulator'}.")
        for section in ("tests", "benchmarks"):
            good = {name: entry for name, entry in before[section].items() if entry["outcome"] in GOOD}
            self.content[section] = {name: {**entry, "earlier": True} for name, entry in good.items()}
        self.content["earlier"] = [*before.get("earlier", []), before["facts"]]

    def state(self, text: str, **facts: Any) -> None:
        """Say what is being done, and add facts."""
        with self._lock:
            self.content["state"] = text
            self.content["facts"] |= facts
            self.save(True)

    def expect(self, section: str, names: list[str]) -> list[str]:
        """Announce tests or benchmarks, which are "not run" until they are; those that did not pass before."""
        with self._lock:
            entries = self.content[section]
            for name in names:
                entries.setdefault(name, {"outcome": "not run", "why": "its turn did not come"})
            self.save(True)
            return [name for name in names if not entries[name].get("earlier")]

    def add(self, section: str, entry: dict[str, Any]) -> None:
        """A result; may be called by several threads."""
        with self._lock:
            self.content[section][entry["id"]] = {name: value for name, value in entry.items() if name != "id"}
            self.save()

    # ----- What it says -----

    def counts(self, section: str) -> dict[str, int]:
        """How many tests or benchmarks there are of each outcome."""
        found: dict[str, int] = {}
        for entry in self.content[section].values():
            found[entry["outcome"]] = found.get(entry["outcome"], 0) + 1
        return found

    def goals(self) -> list[str]:
        """The lines of what was reached, and what was missed."""
        return [line for entry in self.content["benchmarks"].values() for line in entry.get("goals", ())]

    def passed(self) -> bool:
        """Whether all tests and benchmarks that there are have run, and none has failed."""
        entries = [*self.content["tests"].values(), *self.content["benchmarks"].values()]
        finished = self.content["state"] == "finished"
        return finished and bool(entries) and all(entry["outcome"] in GOOD for entry in entries)

    def works(self, start: str) -> bool:
        """Whether any of the tests whose ids begin so has passed, now or earlier."""
        entries = [entry for name, entry in self.content["tests"].items() if name.startswith(start)]
        return any(entry["outcome"] == "passed" for entry in entries)

    def summary(self) -> str:
        """One line."""
        parts = [f"{section}: {_listed(self.counts(section))}" for section in ("tests", "benchmarks")]
        goals = self.goals()
        if goals:
            parts.append(f"goals: {sum(line.startswith('reached') for line in goals)} of {len(goals)} reached")
        return "; ".join([*parts, self.content["state"]])

    def page(self) -> str:
        """The report as Markdown."""
        facts = self.content["facts"]
        where = (
            "the simulator (times mean nothing)"
            if facts.get("simulator")
            else facts.get("device") or "a machine whose GPU it cannot use"
        )
        lines = [f"# nbgrad on {where}", "", self.summary()]
        lines += self._failures() + self._benchmarks() + self._rest()
        lines += ["", "## Environment", "", *[f"- {name}: {_text(value)}" for name, value in facts.items()]]
        return "\n".join(lines) + "\n"

    def _failures(self) -> list[str]:
        """The tests that are not as they should be, together where the first line of the reason is the same."""
        groups: dict[tuple[str, str], list[str]] = {}
        for name, entry in self.content["tests"].items():
            if entry["outcome"] not in (*GOOD, "not run"):
                first = PLACE.sub("", (entry.get("why") or "no reason is known").strip().splitlines()[0])
                groups.setdefault((entry["outcome"], first), []).append(name)
        lines = ["", "## Tests that failed", ""] if groups else []
        for (outcome, first), names in sorted(groups.items(), key=lambda group: -len(group[1])):
            more = f", and {len(names) - SHOWN_TESTS} more" if len(names) > SHOWN_TESTS else ""
            lines += [f"- {outcome}: {first}", f"  {len(names)}: {', '.join(names[:SHOWN_TESTS])}{more}", ""]
            entry = self.content["tests"][names[0]]
            told = entry.get("text", "").strip().splitlines()
            lines += ["  ```", *[f"  {line}" for line in told[-SHOWN_LINES:]], "  ```", ""] if told else []
        return lines

    def _benchmarks(self) -> list[str]:
        entries = self.content["benchmarks"]
        goals = self.goals()
        lines = ["", "## What was to be reached", "", *[f"- {line}" for line in goals]] if goals else []
        lines += ["", "## Benchmarks", ""] if entries else []
        for name, entry in entries.items():
            if entry["outcome"] == "not run":
                continue
            lines += [f"{name}: {entry['outcome']} in {entry['seconds']:.0f} s. {entry['why']}".rstrip(), ""]
            lines += [*entry["table"], ""] if entry["table"] else []
        notes = dict.fromkeys([note for entry in entries.values() for note in entry.get("notes", ())])
        return lines + [f"- {note}" for note in notes]

    def _rest(self) -> list[str]:
        """What was skipped and not run, by reason, and the slowest tests."""
        lines: list[str] = []
        for outcome in ("skipped", "not run"):
            reasons: dict[str, list[str]] = {}
            for section in ("tests", "benchmarks"):
                for name, entry in self.content[section].items():
                    if entry["outcome"] == outcome:
                        reasons.setdefault(entry.get("why", ""), []).append(name)
            lines += ["", f"## {outcome.capitalize()}", ""] if reasons else []
            for why, names in reasons.items():
                more = ", ..." if len(names) > SHOWN_TESTS else ""
                lines.append(f"- {why}: {len(names)}: {', '.join(names[:SHOWN_TESTS])}{more}")
        timed = [(entry.get("seconds", 0.0), name) for name, entry in self.content["tests"].items()]
        slowest = sorted(timed, reverse=True)[:SLOWEST]
        lines += ["", "## Slowest tests", "", *[f"- {seconds:.1f} s: {name}" for seconds, name in slowest]]
        return lines if timed else lines[:-2]

    def save(self, now: bool = False) -> None:
        """Write both files, unless that was done just now."""
        with self._lock:
            if not now and time.monotonic() < self._saved + SECONDS_BETWEEN:
                return
            for name, text in (("report.json", json.dumps(self.content, indent=1)), ("report.md", self.page())):
                unfinished = self.folder / f".{name}.new"
                unfinished.write_text(text, encoding="utf-8")
                os.replace(unfinished, self.folder / name)
            self._saved = time.monotonic()


def _listed(counts: dict[str, int]) -> str:
    return ", ".join([f"{count} {outcome}" for outcome, count in counts.items()]) or "none"


def _text(value: Any) -> str:
    if isinstance(value, dict):
        return "".join([f"\n  - {name}: {_text(one)}" for name, one in value.items()]) or "none"
    return "; ".join(map(str, value)) or "none" if isinstance(value, list) else str(value)
