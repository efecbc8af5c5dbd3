"""The page around the sections of a report: its style sheet, heading and landmarks."""

from collections.abc import Sequence
from typing import NamedTuple

from ckm._display.report.palette import DARK, LIGHT, variables
from ckm._display.report.svg import text_of


class Section(NamedTuple):
    """A part of the page: its anchor, its heading, and its HTML."""

    anchor: str
    heading: str
    html: str


_LIGHT = (
    "--paper:#fbfbf9;--card:#fff;--ink:#1c2024;--soft:#5b636b;--rule:#dfe1de;--grid:#ebece9;"
    "--accent:#2f6db5;--on:#fff;--up:201,96,28;--down:47,109,181;"
    "--good:#27836a;--careful:#94720f;--poor:#b3372f;color-scheme:light;"
)
_DARK = (
    "--paper:#15181b;--card:#1d2125;--ink:#e9ebec;--soft:#a3abb2;--rule:#363c42;--grid:#2a2f34;"
    "--accent:#7db2ee;--on:#15181b;--up:242,160,103;--down:125,178,238;"
    "--good:#66cfac;--careful:#e0c05c;--poor:#f08a80;color-scheme:dark;"
)
_STYLE = (
    f""":root{{{_LIGHT}{variables(LIGHT)}}}
@media (prefers-color-scheme:dark){{:root{{{_DARK}{variables(DARK)}}}}}
@media print{{:root{{{_LIGHT}{variables(LIGHT)}}}}}"""
    + """
*{box-sizing:border-box}
html{-webkit-text-size-adjust:100%}
body{margin:0;background:var(--paper);color:var(--ink);
font:16px/1.55 system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif}
header,main,footer{max-width:1080px;margin:0 auto;padding:0 20px}
header{padding-top:44px}
h1{font-size:clamp(1.6rem,4vw,2.3rem);line-height:1.15;margin:0 0 .3em;letter-spacing:-.015em}
h2{font-size:1.3rem;margin:0 0 .5em;letter-spacing:-.01em}
h3{font-size:1rem;margin:0}
p{margin:.4em 0;max-width:70ch}
a{color:var(--accent)}
.lead{font-size:1.12rem;color:var(--soft)}
.skip{position:absolute;left:-999px}.skip:focus{left:12px;top:8px;background:var(--card);padding:6px}
nav{margin:18px 0 6px;font-size:.92rem}
nav ul{list-style:none;display:flex;flex-wrap:wrap;gap:4px 18px;margin:0;padding:0}
section{margin:38px 0;border-top:1px solid var(--rule);padding-top:22px}
.soft{color:var(--soft)}.small{font-size:.88rem}
.verdict{border-left:5px solid var(--level);background:var(--card);padding:10px 16px;margin:18px 0;
border-radius:0 8px 8px 0}
.verdict strong{font-size:1.08rem}
.good{--level:var(--good)}.careful{--level:var(--careful)}.poor{--level:var(--poor)}
.tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(130px,1fr));gap:12px;
margin:20px 0 0;
padding:0}
.tiles div{background:var(--card);border:1px solid var(--rule);border-radius:10px;padding:10px 14px}
.tiles dt{color:var(--soft);font-size:.84rem}
.tiles dd{margin:0;font-size:1.4rem;font-weight:650;font-variant-numeric:tabular-nums}
.cards{display:grid;grid-template-columns:repeat(auto-fill,minmax(290px,1fr));gap:14px;padding:0;
margin:14px 0;list-style:none}
.card{background:var(--card);border:1px solid var(--rule);border-radius:12px;padding:14px 16px;
break-inside:avoid}
.card .top{display:flex;gap:10px;align-items:center}
.disc{flex:none;width:28px;height:28px;border-radius:50%;color:var(--on);font-weight:700;
display:grid;place-items:center;font-size:.9rem}
.disc.little{width:21px;height:21px;font-size:.76rem;display:inline-grid;margin-right:6px}
.share{font-size:1.45rem;font-weight:650;font-variant-numeric:tabular-nums;line-height:1.2;
margin-top:8px}
.share span{font-size:.86rem;font-weight:400;color:var(--soft)}
.bar{width:100%;max-width:330px;height:auto;display:block;margin:4px 0 8px}
.traits{margin:0;padding:0;list-style:none;font-size:.93rem}
.traits li{display:flex;justify-content:space-between;gap:10px;border-top:1px solid var(--grid);
padding:3px 0}
.traits .value{font-variant-numeric:tabular-nums;color:var(--soft);white-space:nowrap}
.pair{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,330px),1fr));gap:22px}
.map{display:grid;grid-template-columns:minmax(0,2.2fr) minmax(200px,1fr);gap:24px;
align-items:start}
@media (max-width:720px){.map{grid-template-columns:minmax(0,1fr)}}
.many{display:grid;grid-template-columns:repeat(auto-fill,minmax(230px,1fr));gap:16px 22px}
figure{margin:0;break-inside:avoid;min-width:0}
.limited{max-width:620px}
figcaption{font-size:.9rem;color:var(--soft);margin:2px 0 4px}
figcaption strong{color:var(--ink)}
svg{width:100%;height:auto;display:block;overflow:visible}
svg text{font-family:inherit;fill:var(--soft)}
.tick{font-size:12px;font-variant-numeric:tabular-nums}.name{font-size:12.5px}
svg .number{fill:var(--on);font-size:13px;font-weight:700}
.axis{stroke:var(--soft);stroke-width:1}.grid{stroke:var(--grid);stroke-width:1}
.dots{stroke-width:3.4;stroke-linecap:round;opacity:.5;fill:none}
.ellipse{fill-opacity:.08;stroke-opacity:.75;stroke-width:1.3}
.centroid{stroke:var(--paper);stroke-width:2}
.line{fill:none;stroke:var(--accent);stroke-width:2}.point{fill:var(--accent)}
.band{fill:var(--accent);opacity:.18}.mark{stroke:var(--ink);stroke-width:1.2}
.other{stroke-dasharray:4 4;stroke:var(--soft)}
.column{fill:var(--soft);opacity:.45}.column.chosen{fill:var(--accent);opacity:1}
.area{stroke:var(--card);stroke-width:.6}
.interval{stroke:var(--ink);stroke-width:1.6;opacity:.75}
.range{stroke-width:3}.range.found{stroke:var(--poor)}.range.calm{stroke:var(--soft)}
circle.found{fill:var(--poor)}circle.calm{fill:var(--soft)}
.scroll{overflow-x:auto;margin:12px 0;border:1px solid var(--rule);border-radius:10px;
background:var(--card)}
table{border-collapse:collapse;width:100%;font-size:.9rem;font-variant-numeric:tabular-nums}
th,td{padding:6px 11px;text-align:right;white-space:nowrap;border-top:1px solid var(--grid)}
thead th{border-top:0;color:var(--soft);font-weight:600;vertical-align:bottom}
th:first-child,td:first-child{text-align:left}
tbody th{font-weight:600}
td.words{text-align:left;white-space:normal;min-width:220px}
td .soft{display:block;font-size:.8rem;line-height:1.2}td[style] .soft{color:inherit}
dl.facts{display:grid;grid-template-columns:max-content 1fr;gap:3px 20px;margin:10px 0;
font-size:.92rem}
dl.facts dt{color:var(--soft)}dl.facts dd{margin:0;overflow-wrap:anywhere}
.checks{list-style:none;margin:0;padding:0}
.checks li{border-left:4px solid var(--level);padding:4px 14px;margin:12px 0}
footer{color:var(--soft);font-size:.86rem;padding-bottom:48px}
:focus-visible{outline:2px solid var(--accent);outline-offset:2px}
@media (max-width:520px){header,main,footer{padding-left:14px;padding-right:14px}
header{padding-top:24px}dl.facts{grid-template-columns:1fr;gap:0}dl.facts dd{margin-bottom:8px}}
@media print{body{font-size:11pt;background:#fff}nav,.skip{display:none}
section{margin:20px 0;padding-top:12px}h2{break-after:avoid}.scroll{overflow:visible}
*{-webkit-print-color-adjust:exact;print-color-adjust:exact}}
"""
)


def render_page(title: str, top: str, sections: Sequence[Section], bottom: str) -> str:
    """A page that needs nothing from outside."""
    links = "".join(f'<li><a href="#{s.anchor}">{text_of(s.heading)}</a></li>' for s in sections)
    body = "".join(
        f'<section id="{s.anchor}" aria-labelledby="{s.anchor}-h">'
        f'<h2 id="{s.anchor}-h">{text_of(s.heading)}</h2>{s.html}</section>'
        for s in sections
    )
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{text_of(title)}</title><style>{_STYLE}</style></head><body>"
        '<a class="skip" href="#main">Skip to the clusters</a>'
        f'<header>{top}<nav aria-label="Sections"><ul>{links}</ul></nav></header>'
        f'<main id="main">{body}</main><footer>{bottom}</footer></body></html>\n'
    )


def table(header: Sequence[str], rows: Sequence[Sequence[str]], caption: str) -> str:
    """A table that scrolls sideways where it is wide; cells are HTML, or whole `<td>` elements."""
    head = "".join(f'<th scope="col">{cell}</th>' for cell in header)
    body = "".join(f"<tr>{_cells(row)}</tr>" for row in rows)
    return (
        f'<div class="scroll" role="region" tabindex="0" aria-label="{text_of(caption)}"><table>'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _cells(row: Sequence[str]) -> str:
    first, *others = row
    cells = (cell if cell.startswith("<td") else f"<td>{cell}</td>" for cell in others)
    return f'<th scope="row">{first}</th>' + "".join(cells)


def facts(pairs: Sequence[tuple[str, str]]) -> str:
    """Names and values."""
    inner = "".join(f"<dt>{text_of(name)}</dt><dd>{text_of(value)}</dd>" for name, value in pairs)
    return f'<dl class="facts">{inner}</dl>'
