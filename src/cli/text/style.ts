import { styleText } from 'node:util';

type Format = Parameters<typeof styleText>[0];

/** Says things in a colour where there are colours. */
export interface Style {
  dim(text: string): string;
  bold(text: string): string;
  accent(text: string): string;
  good(text: string): string;
  bad(text: string): string;
  warn(text: string): string;
}

/** The styles of a terminal; without colours a text stays as it is. */
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
