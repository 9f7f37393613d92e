"""The frame of the page: one file, no scripts, nothing loaded; readable on a phone, on paper and aloud."""

from string import Template

PAGE = Template(
    """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>$title: methods compared</title>
<style>
:root { color-scheme: light; --ink: #1d2329; --soft: #59636e; --faint: #8b949d; --paper: #fff;
  --line: #e3e5e8; --shade: #f6f7f8; --accent: #4477aa; --best: #e8f0f7; --warn: #fdf6e6;
  --warnline: #ccbb44; }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 74rem; padding: 3rem 1.5rem 5rem; background: var(--paper);
  color: var(--ink); font: 16px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; }
h1 { font-size: 2.1rem; line-height: 1.15; letter-spacing: -0.02em; margin: 0 0 0.3rem; }
h2 { font-size: 1.3rem; letter-spacing: -0.01em; margin: 3.2rem 0 0.4rem; padding-top: 0.9rem;
  border-top: 1px solid var(--line); }
h3 { font-size: 1rem; margin: 1.8rem 0 0.2rem; }
p, ul.reading, .warnings { max-width: 48rem; }
p { margin: 0.4rem 0 0.9rem; }
.lead, .note, figcaption { color: var(--soft); }
.note, figcaption { font-size: 0.9rem; }
nav { margin: 1.2rem 0 0; font-size: 0.9rem; }
nav a { color: var(--accent); text-decoration: none; margin-right: 0.9rem; white-space: nowrap; }
nav a:hover { text-decoration: underline; }
ul.reading { list-style: none; margin: 1.6rem 0; padding: 0.1rem 0 0.1rem 1.1rem;
  border-left: 4px solid var(--accent); }
ul.reading li { margin: 0.45rem 0; }
ul.reading li:first-child { font-size: 1.22rem; line-height: 1.4; }
.warnings { background: var(--warn); border-left: 4px solid var(--warnline); padding: 0.6rem 1rem;
  border-radius: 0 6px 6px 0; font-size: 0.93rem; }
.warnings ul { margin: 0.2rem 0; padding-left: 1.2rem; }
.scroll { overflow-x: auto; margin: 0.8rem 0; }
table { border-collapse: collapse; min-width: 34rem; font-size: 0.86rem; font-variant-numeric: tabular-nums; }
caption { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
th, td { padding: 0.4rem 0.5rem; text-align: right; vertical-align: top;
  border-bottom: 1px solid var(--line); }
tbody th { text-align: left; font-weight: 550; white-space: nowrap; position: sticky; left: 0;
  background: var(--paper); }
thead th { font-size: 0.76rem; max-width: 7rem; font-weight: 550; color: var(--soft); vertical-align: bottom;
  line-height: 1.3; }
thead th i { font-style: normal; margin-left: 0.2em; }
tr.groups th { text-align: center; color: var(--ink); border-bottom: 2px solid var(--line); }
tr.baseline th { font-weight: 400; font-style: italic; color: var(--soft); }
td small { display: block; color: var(--faint); font-size: 0.7rem; white-space: nowrap; }
td.best { background: var(--best); font-weight: 650; }
td.best small { font-weight: 400; }
td sup { line-height: 0; }
td.below, td.below small { color: #77818a; }
figure { margin: 1rem 0; break-inside: avoid; }
figure img { max-width: 100%; height: auto; display: block; }
table.strips { min-width: 0; }
table.strips td, table.strips th { text-align: center; padding: 0.25rem; border: 0; }
table.strips thead th { max-width: 8rem; white-space: normal; }
table.strips tbody th { text-align: left; vertical-align: middle; padding-right: 0.9rem; }
table.strips tr.group th { padding-top: 1rem; color: var(--accent); font-weight: 650; }
table.strips th small { display: block; font-weight: 400; color: var(--soft); max-width: 10rem;
  overflow: hidden; text-overflow: ellipsis; }
table.strips img { height: 88px; width: auto; border-radius: 4px; display: block; margin: 0 auto 0.1rem; }
b.hit { color: #1c6e2c; font-weight: 600; } b.miss { color: #b3243a; font-weight: 600; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 0.3rem 1.4rem; font-size: 0.93rem; }
dt { color: var(--soft); } dd { margin: 0; overflow-wrap: anywhere; }
code, pre { font-family: ui-monospace, "SF Mono", Menlo, Consolas, monospace; font-size: 0.86em; }
pre { background: var(--shade); padding: 0.9rem 1.1rem; border-radius: 6px; overflow-x: auto; }
details { margin: 0.8rem 0; } summary { cursor: pointer; color: var(--accent); font-size: 0.93rem; }
@media (max-width: 640px) { body { padding: 1.5rem 1rem 3rem; } h1 { font-size: 1.6rem; }
  dl { grid-template-columns: 1fr; gap: 0.1rem; } dd { margin-bottom: 0.5rem; } }
@page { size: landscape; margin: 12mm; }
@media print { body { max-width: none; padding: 0; font-size: 10.5pt; } nav { display: none; }
  .scroll { overflow: visible; } table { font-size: 8pt; } thead th { font-size: 7pt; }
  td small { font-size: 6.5pt; } h2 { break-after: avoid; } tr { break-inside: avoid; }
  * { print-color-adjust: exact; -webkit-print-color-adjust: exact; } }
</style>
</head>
<body>
<header>
<h1>Methods compared on $title</h1>
<p class="lead">$lead</p>
<nav aria-label="Sections">$nav</nav>
</header>
<main>
$body
</main>
</body>
</html>
"""
)
