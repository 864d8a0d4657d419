import { styleText } from 'node:util';

type Format = Parameters<typeof styleText>[0];

/** Formats text for a terminal. */
export interface Style {
  dim(text: string): string;
  bold(text: string): string;
  accent(text: string): string;
  good(text: string): string;
  bad(text: string): string;
  warn(text: string): string;
}

/** The styles of a terminal; without colours, text does not change. */
export function createStyle(colours: boolean): Style {
  const style =
    (format: Format) =>
    (text: string): string =>
      colours ? styleText(format, text, { validateStream: false }) : text;
  return {
    dim: style('dim'),
    bold: style('bold'),
    accent: style('cyan'),
    good: style('green'),
    bad: style('red'),
    warn: style('yellow'),
  };
}
