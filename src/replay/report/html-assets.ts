/** The style of the HTML report, for light and dark screens. */
export const style = `
:root { color-scheme: light dark; --line: #8888; --good: #17692f; --bad: #a3201c; --soft: #5a6069; --page: #fff; --ink: #16191d; }
@media (prefers-color-scheme: dark) { :root { --good: #6cd48a; --bad: #ff9a91; --soft: #a7adb6; --page: #16191d; --ink: #eceef1; } }
* { box-sizing: border-box; }
body { background: var(--page); color: var(--ink); font: 15px/1.5 system-ui, sans-serif; margin: 0 auto; max-width: 1200px; padding: 1.5rem; }
h1 { font-size: 1.5rem; margin: 0; }
h2 { font-size: 1.05rem; margin: 0 0 .5rem; display: flex; flex-wrap: wrap; gap: .75rem; align-items: baseline; }
h3 { font-size: .85rem; margin: 0 0 .5rem; color: var(--soft); }
table { border-collapse: collapse; }
caption { text-align: left; font-weight: 600; padding: .25rem 0; }
th, td { text-align: left; padding: .2rem 1rem .2rem 0; vertical-align: top; font-weight: inherit; overflow-wrap: anywhere; }
.totals td { text-align: right; font-variant-numeric: tabular-nums; }
.totals thead th { text-align: right; }
form { display: flex; flex-wrap: wrap; gap: 1rem; align-items: center; margin: 1.5rem 0 1rem; }
select, input { font: inherit; padding: .25rem .5rem; }
output { color: var(--soft); }
article { border: 1px solid var(--line); border-radius: .5rem; padding: 1rem; margin: 0 0 1rem; }
article[hidden] { display: none; }
.session, .meta { color: var(--soft); font-size: .85rem; font-weight: normal; overflow-wrap: anywhere; }
.same { color: var(--good); font-size: .85rem; }
.differs { color: var(--bad); font-size: .85rem; }
.input { margin: 0 0 .75rem; overflow-wrap: anywhere; }
.sides { display: grid; grid-template-columns: 1fr 1fr; gap: 1rem; }
.side { min-width: 0; border-top: 2px solid var(--line); padding-top: .5rem; }
@media (max-width: 700px) { .sides { grid-template-columns: 1fr; } }
pre { white-space: pre-wrap; overflow-wrap: anywhere; margin: 0; font: inherit; max-height: 24rem; overflow: auto; }
code { font: .85rem/1.4 ui-monospace, monospace; overflow-wrap: anywhere; white-space: pre-wrap; }
.call code { display: block; }
.call { margin-bottom: .5rem; }
.meta { margin: .5rem 0 0; }
.error { color: var(--bad); margin: .5rem 0 0; }
.divergences { margin-top: 1rem; width: 100%; table-layout: fixed; }
.divergences th:first-child { width: 14rem; }
.divergences thead th { color: var(--soft); font-size: .85rem; }
`;

/** Shows the turns that the filter leaves. */
export const script = `
const kind = document.getElementById('kind');
const query = document.getElementById('query');
const turns = [...document.querySelectorAll('article')];
function show() {
  const wanted = query.value.trim().toLowerCase();
  let count = 0;
  for (const turn of turns) {
    const kinds = turn.dataset.kinds.split(' ').filter(Boolean);
    const fits = kind.value === '' || (kind.value === '*' ? kinds.length > 0 : kinds.includes(kind.value));
    turn.hidden = !fits || !turn.textContent.toLowerCase().includes(wanted);
    if (!turn.hidden) count++;
  }
  document.getElementById('count').textContent = count + (count === 1 ? ' turn' : ' turns');
}
kind.addEventListener('change', show);
query.addEventListener('input', show);
document.querySelector('form').addEventListener('submit', (event) => event.preventDefault());
show();
`;
