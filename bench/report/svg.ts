/** One line of a plot. */
export interface Series {
  readonly name: string;
  readonly points: readonly (readonly [x: number, y: number])[];
  /** Drawn to be seen first. */
  readonly ours: boolean;
}

export interface LinePlot {
  readonly title: string;
  readonly x: { readonly label: string; readonly ticks: readonly number[] };
  readonly y: { readonly label: string; readonly format: (value: number) => string };
  readonly series: readonly Series[];
}

const width = 820;
const height = 440;
const frame = { left: 70, right: 590, top: 62, bottom: 390 };

const ourColours = ['#0b6e4f', '#08a045', '#1d8a99', '#6bbf59', '#2f9c95'];
const otherColours = ['#c1272d', '#e07a1f', '#7b4fa0', '#4467b0', '#b0507a', '#8a6d3b', '#5f6b73'];

/** Lines over two logarithmic scales; what costs the same at any length is level. */
export function drawLines({ title, x, y, series }: LinePlot): string | undefined {
  if (series.length === 0) return undefined;
  const values = series.flatMap(({ points }) => points.map(([, value]) => value));
  const decades = decadesOf(Math.min(...values), Math.max(...values));
  const toX = scale(x.ticks[0] ?? 1, x.ticks.at(-1) ?? 10, frame.left, frame.right);
  const toY = scale(decades[0] ?? 1, decades.at(-1) ?? 10, frame.bottom, frame.top);
  const colour = colours();
  const drawn = series.map((one) => ({ ...one, colour: colour(one.ours) }));
  const labels = spreadOut(
    drawn.map(({ points }) => toY(points.at(-1)?.[1] ?? 1)),
    17,
  );
  return page(title, [
    ...decades.map((value) => gridLine(toY(value), y.format(value))),
    ...x.ticks.map((value) => tick(toX(value), value.toLocaleString('en'))),
    text({ x: (frame.left + frame.right) / 2, y: height - 14, anchor: 'middle' }, x.label),
    text({ x: frame.left, y: frame.top - 12 }, y.label),
    ...drawn.flatMap((one, at) => [
      path(
        one.points.map(([a, b]) => [toX(a), toY(b)]),
        one,
      ),
      leader(
        toX(one.points.at(-1)?.[0] ?? 1),
        toY(one.points.at(-1)?.[1] ?? 1),
        labels[at] ?? 0,
        one.colour,
      ),
      text(
        { x: frame.right + 22, y: (labels[at] ?? 0) + 4, fill: one.colour, bold: one.ours },
        one.name,
      ),
    ]),
  ]);
}

export interface Bar {
  readonly name: string;
  readonly value: number;
  readonly ours: boolean;
}

/** Bars over a plain scale. */
export function drawBars(
  title: string,
  bars: readonly Bar[],
  format: (value: number) => string,
): string | undefined {
  if (bars.length === 0) return undefined;
  const rowHeight = 26;
  const left = 220;
  const most = Math.max(...bars.map(({ value }) => value));
  const rows = bars.map(({ name, value, ours }, at) => {
    const top = 52 + at * rowHeight;
    const length = Math.max(2, (value / most) * (width - left - 110));
    const fill = ours ? ourColours[0] : '#9aa5ab';
    return [
      text({ x: left - 10, y: top + 14, anchor: 'end', bold: ours }, name),
      `<rect x="${left}" y="${top}" width="${fixed(length)}" height="18" fill="${fill}"/>`,
      text({ x: left + length + 8, y: top + 14 }, format(value)),
    ].join('');
  });
  return page(title, rows, 64 + bars.length * rowHeight);
}

function page(title: string, parts: readonly string[], tall: number = height): string {
  const body = [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${tall}" font-family="system-ui, sans-serif" font-size="13" role="img">`,
    `<title>${escaped(title)}</title>`,
    `<rect width="${width}" height="${tall}" fill="#ffffff"/>`,
    `<text x="16" y="24" font-size="15" font-weight="600" fill="#1c2427">${escaped(title)}</text>`,
    ...parts,
    '</svg>',
  ];
  return `${body.join('\n')}\n`;
}

function text(
  place: {
    readonly x: number;
    readonly y: number;
    readonly anchor?: 'middle' | 'end';
    readonly fill?: string | undefined;
    readonly bold?: boolean;
  },
  content: string,
): string {
  const { x, y, anchor = 'start', fill = '#3b474c', bold = false } = place;
  const weight = bold ? ' font-weight="600"' : '';
  return `<text x="${fixed(x)}" y="${fixed(y)}" text-anchor="${anchor}" fill="${fill}"${weight}>${escaped(content)}</text>`;
}

function gridLine(y: number, label: string): string {
  const line = `<line x1="${frame.left}" x2="${frame.right}" y1="${fixed(y)}" y2="${fixed(y)}" stroke="#e3e8ea"/>`;
  return line + text({ x: frame.left - 8, y: y + 4, anchor: 'end' }, label);
}

function tick(x: number, label: string): string {
  return text({ x, y: frame.bottom + 20, anchor: 'middle' }, label);
}

function path(
  points: readonly (readonly number[])[],
  { colour, ours }: { readonly colour: string; readonly ours: boolean },
): string {
  const places = points.map(([x = 0, y = 0]) => `${fixed(x)},${fixed(y)}`);
  const stroke = ours ? 3 : 1.75;
  const dots = points.map(
    ([x = 0, y = 0]) =>
      `<circle cx="${fixed(x)}" cy="${fixed(y)}" r="${ours ? 4 : 3}" fill="${colour}"/>`,
  );
  return `<polyline points="${places.join(' ')}" fill="none" stroke="${colour}" stroke-width="${stroke}"/>${dots.join('')}`;
}

// From the end of a line to its name, which may have had to make room for others.
function leader(x: number, y: number, labelY: number, colour: string): string {
  return `<line x1="${fixed(x + 5)}" y1="${fixed(y)}" x2="${frame.right + 18}" y2="${fixed(labelY)}" stroke="${colour}" stroke-width="0.75" opacity="0.6"/>`;
}

function colours(): (ours: boolean) => string {
  const next = { ours: 0, others: 0 };
  return (ours) =>
    (ours
      ? ourColours[next.ours++ % ourColours.length]
      : otherColours[next.others++ % otherColours.length]) ?? '#000000';
}

function scale(from: number, to: number, start: number, end: number): (value: number) => number {
  const low = Math.log10(from);
  const range = Math.log10(to) - low || 1;
  return (value) => start + ((Math.log10(value) - low) / range) * (end - start);
}

function decadesOf(least: number, most: number): readonly number[] {
  const first = Math.floor(Math.log10(least));
  const last = Math.max(first + 1, Math.ceil(Math.log10(most)));
  return Array.from({ length: last - first + 1 }, (_, at) => 10 ** (first + at));
}

/** Places at least `gap` apart, each as near to its own as the others let it. */
function spreadOut(places: readonly number[], gap: number): readonly number[] {
  const order = places.map((place, at) => ({ place, at })).sort((a, b) => a.place - b.place);
  let least = frame.top;
  for (const one of order) {
    one.place = Math.max(one.place, least);
    least = one.place + gap;
  }
  let most = frame.bottom;
  for (const one of order.toReversed()) {
    one.place = Math.min(one.place, most);
    most = one.place - gap;
  }
  return order.sort((a, b) => a.at - b.at).map(({ place }) => place);
}

function fixed(value: number): string {
  return String(Number(value.toFixed(1)));
}

function escaped(content: string): string {
  return content.replace(/&/g, '&amp;').replace(/</g, '&lt;').replace(/>/g, '&gt;');
}
