import type { Json } from '../../core/json/json.ts';
import { textOf } from '../../protocol/messages/text.ts';
import type { Cost } from '../../protocol/turn.ts';
import type { Divergence } from '../compare/divergence.ts';
import { Html, html } from './html.ts';
import { script, style } from './html-assets.ts';
import type { ReplayReport, ReplayTotals, ShownSide, TurnReport } from './report.ts';

/** Longer texts are cut: a report is for reading. */
const maxLength = 20_000;

/**
 * A report as one HTML page, without references to anything outside.
 *
 * @example
 * await writeFile('replay.html', toHtmlReport(report, { title: 'New prompt' }));
 */
export function toHtmlReport(
  report: ReplayReport,
  options: { readonly title?: string } = {},
): string {
  const { title = 'Replay' } = options;
  const { turns, skipped, divergent } = report;
  const kinds = [...new Set(turns.flatMap(kindsOf))].toSorted();
  const page = html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'">
<title>${title}</title>
<style>${new Html(style)}</style>
</head>
<body>
<header>
<h1>${title}</h1>
<p>${divergent === 0 ? 'No turn differs from its recording.' : `${divergent} of ${turns.length} turns differ from their recording.`}
${skipped.length > 0 && `${skipped.length} skipped.`} ${report.stopped && 'The budget was used up before all turns were replayed.'}</p>
${totals(report)}
</header>
<main>
<form role="search" aria-label="Filter turns">
<label>Show <select id="kind"><option value="">all turns</option>
<option value="*"${divergent > 0 && new Html(' selected')}>turns that differ</option>
${kinds.map((kind) => html`<option value="${kind}">${names[kind]}</option>`)}</select></label>
<label>Search <input id="query" type="search"></label>
<output id="count">${turns.length} turns</output>
</form>
${turns.map(turnOf)}
${skipped.length > 0 && skippedList(report)}
</main>
<script>${new Html(script)}</script>
</body>
</html>
`;
  return page.text;
}

const names: Readonly<Record<Divergence['kind'], string>> = {
  toolCall: 'tool calls',
  toolResult: 'tool results',
  custom: 'custom state',
  artifact: 'artifacts',
  text: 'text',
  content: 'other content',
  finishReason: 'finish reason',
  model: 'model',
  tokens: 'tokens',
  cost: 'cost',
  time: 'time',
};

function kindsOf({ divergences }: TurnReport): Divergence['kind'][] {
  return divergences.map(({ kind }) => kind);
}

function totals({ recorded, replayed, scores }: ReplayReport): Html {
  const row = (name: string, of: (side: ReplayTotals) => string): Html =>
    html`<tr><th scope="row">${name}</th><td>${of(recorded)}</td><td>${of(replayed)}</td></tr>`;
  const hasCost = recorded.cost !== undefined || replayed.cost !== undefined;
  return html`<table class="totals"><caption>Totals</caption>
<thead><tr><td></td><th scope="col">Recorded</th><th scope="col">Replayed</th></tr></thead>
<tbody>${row('Tokens', ({ tokens }) => tokens.toLocaleString('en'))}
${hasCost && row('Cost', ({ cost }) => costText(cost))}
${row('Time', ({ time }) => timeText(time))}
${Object.entries(scores).map(
  ([name, score]) =>
    html`<tr><th scope="row">${name}</th><td></td><td>${score.toFixed(2)}</td></tr>`,
)}</tbody></table>`;
}

function timeText(ms: number): string {
  return ms < 1_000 ? `${Math.round(ms)} ms` : `${(ms / 1_000).toFixed(1)} s`;
}

// Costs are counted in millionths.
function costText(cost: Cost | undefined): string {
  if (cost === undefined) return 'unknown';
  return Object.entries(cost)
    .map(([currency, amount]) => `${(amount / 1e6).toFixed(4)} ${currency}`)
    .join(', ');
}

function turnOf(turn: TurnReport, place: number): Html {
  const { sessionId, turnIndex, divergences, scores, missingEffects } = turn;
  const kinds = [...new Set(kindsOf(turn))].join(' ');
  return html`<article data-kinds="${kinds}" aria-labelledby="turn-${place}">
<h2 id="turn-${place}">Turn ${turnIndex + 1} <span class="session">${turn.agent} · ${sessionId}</span>
${divergences.length === 0 ? html`<span class="same">same</span>` : html`<span class="differs">differs</span>`}</h2>
<p class="input"><b>Input</b> ${inputText(turn)}</p>
<div class="sides">${sideOf('Recorded', turn.recorded)}${sideOf('Replayed', turn.replayed)}</div>
${divergences.length > 0 && divergenceTable(divergences)}
${
  scores.length > 0 &&
  html`<ul class="scores">${scores.map(
    ({ name, score, reason }) =>
      html`<li>${name}: ${score.toFixed(2)}${reason && ` (${cut(reason)})`}</li>`,
  )}</ul>`
}
${
  missingEffects.length > 0 &&
  html`<ul class="missing">${missingEffects.map((text) => html`<li>${text}</li>`)}</ul>`
}
</article>
`;
}

function inputText({ input }: TurnReport): string {
  if (input.message !== undefined)
    return cut(textOf(input.message) || json(input.message as never));
  const { respond = [], restart = [] } = input.resume ?? {};
  const answers = [
    ...respond.map(
      ({ toolResponse: { name, output } }) => `${name} answered ${json(output ?? null)}`,
    ),
    ...restart.map(({ toolRequest: { name } }) => `${name} approved`),
  ];
  return cut(answers.join(', '));
}

function sideOf(title: string, side: ShownSide): Html {
  const { text, toolCalls, finishReason = '', tokens, time, error, cost } = side;
  return html`<div class="side"><h3>${title}</h3>
${toolCalls.map(
  ({ name, input, output, interrupt }) =>
    html`<div class="call"><code>${name}(${cut(json(input))})</code>
<code>${interrupt === undefined ? `→ ${cut(json(output ?? null))}` : `waits: ${cut(json(interrupt))}`}</code></div>`,
)}
<pre tabindex="0">${cut(text)}</pre>
${error && html`<p class="error">${error.status}: ${cut(error.message)}</p>`}
<p class="meta">${finishReason} · ${tokens.toLocaleString('en')} tokens · ${timeText(time)}${cost !== undefined && ` · ${costText(cost)}`}</p></div>`;
}

function divergenceTable(divergences: readonly Divergence[]): Html {
  return html`<table class="divergences"><caption>Differences</caption>
<thead><tr><th scope="col">Where</th><th scope="col">Recorded</th><th scope="col">Replayed</th></tr></thead>
<tbody>${divergences.map(
    ({ path, recorded, replayed }) => html`<tr><th scope="row"><code>${path}</code></th>
<td><code>${valueText(recorded)}</code></td><td><code>${valueText(replayed)}</code></td></tr>`,
  )}</tbody></table>`;
}

function skippedList({ skipped }: ReplayReport): Html {
  return html`<section class="skipped"><h2>Skipped</h2><ul>${skipped.map(
    ({ sessionId, turnIndex, reason }) =>
      html`<li>${sessionId}${turnIndex !== undefined && `, turn ${turnIndex + 1}`}: ${reason}</li>`,
  )}</ul></section>`;
}

function valueText(value: Json | undefined): string {
  return value === undefined ? '—' : cut(json(value));
}

function json(value: Json): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}

function cut(text: string): string {
  return text.length <= maxLength
    ? text
    : `${text.slice(0, maxLength)}… (${text.length} characters)`;
}
