import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Samples } from '../lib/samples.ts';
import { repository } from '../lib/setup.ts';
import type { Results, Row } from '../results.ts';
import { bytes, number } from './format.ts';
import { isWeighed } from './rows.ts';
import { drawBars, drawLines, type Series } from './svg.ts';

/** Draws the plots of `RESULTS.md`. The documentation shows one of them, which is with its images. */
export function drawPlots(results: Results): void {
  for (const [name, plot] of Object.entries(plotsOf(results))) {
    const folder = join(repository, name === 'stored' ? 'docs/images' : 'bench/results');
    mkdirSync(folder, { recursive: true });
    if (plot !== undefined) writeFileSync(join(folder, `bench-${name}.svg`), plot);
  }
}

function plotsOf({
  lengths,
  turns,
  stored,
  idle,
  footprint,
}: Results): Record<string, string | undefined> {
  const x = { label: 'turn of the session', ticks: lengths };
  const ms = { label: 'milliseconds', format: number };
  return {
    turns: drawLines({
      title: 'A turn in memory, instant model',
      x,
      y: ms,
      series: turns.flatMap((row) => seriesOf(row, medians(row.result?.times))),
    }),
    stored: drawLines({
      title: 'A turn that is stored on the disk, instant model',
      x,
      y: ms,
      series: stored.flatMap((row) => seriesOf(row, medians(row.result?.times))),
    }),
    bytes: drawLines({
      title: 'What a session takes on the disk',
      x: { label: 'turns', ticks: lengths.filter((length) => length >= 10) },
      y: { label: 'bytes', format: bytes },
      series: stored.flatMap((row) => seriesOf(row, row.result?.bytes ?? {})),
    }),
    idle: drawBars(
      'Memory of an open, idle session of five turns',
      idle.flatMap(({ title, system, result }) =>
        result ? [{ name: title, value: result.bytesPerSession, ours: system === 'waymark' }] : [],
      ),
      bytes,
    ),
    import: drawBars(
      'Time to import, fresh process',
      footprint
        .filter(isWeighed)
        .filter(({ title }) => title !== 'bare Node')
        .map(({ title, importMs }) => ({
          name: title,
          value: importMs.median,
          ours: title.startsWith('Waymark'),
        })),
      (value) => `${number(value)} ms`,
    ),
  };
}

function medians(samples: Samples = {}): Record<number, number> {
  return Object.fromEntries(Object.entries(samples).map(([at, { median }]) => [at, median]));
}

function seriesOf({ title, system }: Row<unknown>, values: Record<number, number>): Series[] {
  const points = Object.entries(values)
    .map(([at, value]) => [Number(at), value] as const)
    .filter(([, value]) => value > 0);
  return points.length === 0 ? [] : [{ name: title, points, ours: system === 'waymark' }];
}
