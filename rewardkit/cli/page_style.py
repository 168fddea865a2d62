"""How a page that is sent to somebody looks: on light and on dark ground, on a phone and on paper."""

from __future__ import annotations

_LIGHT = """
--ink:#1c2024;--ink-2:#55606b;--line:#dfe3e8;--ground:#fbfcfd;--panel:#fff;--accent:#0b63b5;
--good:#0a7048;--bad:#b42318;--warn:#9a5b00;--skip:#5d5793;--plus:#e4f5ec;--minus:#fdeceb;
--s1:#0072b2;--s2:#d55e00;--s3:#00875f;--s4:#b75a8e;--s5:#a87400;--s6:#3a93c9;--s7:#77780a;--s8:#6b7280;
"""
_DARK = """
--ink:#e6e9ec;--ink-2:#a3adb8;--line:#2e343b;--ground:#131619;--panel:#1a1e22;--accent:#6cb6f5;
--good:#5fcf9b;--bad:#ff8a80;--warn:#e9b04c;--skip:#b4aef0;--plus:#14301f;--minus:#3a1d1c;
--s1:#56b4e9;--s2:#ef8438;--s3:#2fbf94;--s4:#e09ac4;--s5:#e6b422;--s6:#8fd0f5;--s7:#d8d75a;--s8:#a3adb8;
"""
STYLE = (
    f"""
:root{{color-scheme:light dark;{_LIGHT}}}
@media (prefers-color-scheme:dark){{:root{{{_DARK}}}}}
"""
    + """
*{box-sizing:border-box}
html{scroll-behavior:smooth;scroll-padding-top:56px;-webkit-text-size-adjust:100%}
@media (prefers-reduced-motion:reduce){html{scroll-behavior:auto}}
body{margin:0;background:var(--ground);color:var(--ink);font:14px/1.5 system-ui,-apple-system,"Segoe UI",sans-serif}
main{max-width:1240px;margin:0 auto;padding:24px 24px 64px}
nav{position:sticky;top:0;z-index:1;background:var(--ground);border-bottom:1px solid var(--line);
padding:8px 24px;overflow-x:auto;white-space:nowrap}
nav a{color:var(--ink-2);text-decoration:none;margin-right:16px;display:inline-block;padding:4px 0}
nav a:hover{color:var(--ink)}
:focus-visible{outline:2px solid var(--accent);outline-offset:2px;border-radius:2px}
h1{font-size:24px;line-height:1.25;margin:0 0 4px;overflow-wrap:anywhere}
h2{font-size:18px;line-height:1.3;margin:0 0 8px}
h3{font-size:14px;margin:24px 0 8px;overflow-wrap:anywhere}
section{margin-top:40px}
p{margin:0 0 8px;max-width:76ch;overflow-wrap:anywhere}
.note,.quiet{color:var(--ink-2)}
.state{font-size:14px;font-weight:400;color:var(--ink-2);margin-left:8px;white-space:nowrap}
.state.running{color:var(--good)}
dl{display:grid;grid-template-columns:minmax(88px,max-content) 1fr;gap:4px 16px;margin:12px 0}
dt{color:var(--ink-2)}dd{margin:0;overflow-wrap:anywhere;min-width:0}
.box{overflow-x:auto;border:1px solid var(--line);border-radius:6px;background:var(--panel);margin:8px 0}
table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}
th,td{text-align:left;padding:6px 12px;border-top:1px solid var(--line);vertical-align:top}
thead th{border-top:0;color:var(--ink-2);font-weight:500;font-size:12px;white-space:nowrap}
td{overflow-wrap:break-word;max-width:420px}
.wide{min-width:220px;overflow-wrap:anywhere}
.side .wide{min-width:120px}
.n{text-align:right;white-space:nowrap}
td svg{vertical-align:middle}
.graphs{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,340px),1fr));gap:16px}
.graph{background:var(--panel);border:1px solid var(--line);border-radius:6px;padding:12px;min-width:0}
.graph .rk-chart{max-width:none}
pre{font:12px/1.5 ui-monospace,"SF Mono",Menlo,Consolas,monospace;margin:8px 0;padding:8px 12px;border-radius:6px;
border:1px solid var(--line);background:var(--panel);overflow:auto;max-height:480px;tab-size:4}
pre.text{white-space:pre-wrap;overflow-wrap:anywhere}
pre i,.unknown{color:var(--ink-2)}
pre .plus{background:var(--plus);display:block}pre .minus{background:var(--minus);display:block}
pre .place{color:var(--ink-2);display:block}
details{border:1px solid var(--line);border-radius:6px;background:var(--panel);margin:8px 0;padding:0 12px}
summary{cursor:pointer;padding:8px 0;overflow-wrap:anywhere}
details[open]>summary{border-bottom:1px solid var(--line);margin-bottom:8px}
details>pre{background:var(--ground)}
.flag{border-left:3px solid var(--warn);padding:4px 0 4px 16px;margin:16px 0}
.flag h3,.failure h3{margin:0 0 4px}
.failure{border-left:3px solid var(--bad);padding:4px 0 4px 16px;margin:16px 0}
.sides{display:grid;grid-template-columns:1fr 1fr;gap:16px}
.pair{margin:0 0 32px}.side{min-width:0}
.short{white-space:nowrap}
details .box,.side .box{margin-bottom:4px}.side td,.side th{padding:4px 12px}
.side h4{margin:0;font-size:13px;font-weight:500;color:var(--ink-2)}
.scored{color:var(--ink)}.skipped{color:var(--skip)}.failed{color:var(--bad);font-weight:600}
.role{font-size:12px;color:var(--ink-2);margin:8px 0 -4px}
.up{color:var(--good)}.down{color:var(--bad)}
.next::before{content:"Next: ";font-weight:600}
@media (max-width:720px){main{padding:16px 12px 48px}nav{padding:8px 12px}.sides{grid-template-columns:1fr}
dl{grid-template-columns:1fr;gap:0}dd{margin-bottom:8px}th,td{padding:6px 8px}}
@media print{:root{"""
    + _LIGHT
    + """--ground:#fff}
body{font-size:10pt}nav{display:none}main{max-width:none;padding:0}
pre{max-height:none;overflow:visible;white-space:pre-wrap;overflow-wrap:anywhere}
.box{overflow:visible}details::details-content{content-visibility:visible;display:block;height:auto}
.graph,.flag,.failure,tr{break-inside:avoid}h2,h3,summary{break-after:avoid}
.graphs{grid-template-columns:1fr 1fr}section{margin-top:24px}}
"""
)
