import type { ReactNode } from 'react';

/** Drawn on 16 × 16, as strokes. */
const shapes = {
  attach:
    'M13 7.5 7.8 12.7a3 3 0 0 1-4.3-4.3l5.4-5.3a2 2 0 0 1 2.9 2.9l-5.3 5.2a1 1 0 0 1-1.5-1.4L9.7 5',
  auto: 'M8 2.5a5.5 5.5 0 1 0 0 11zM8 2.5a5.5 5.5 0 0 1 0 11',
  back: 'M6 3.5 2.5 7 6 10.5M2.5 7h7a4 4 0 0 1 0 8H8',
  branch:
    'M4.5 5.5v5M4.5 8.5c0-2 7-1 7-3.5M6 4a1.5 1.5 0 1 1-3 0 1.5 1.5 0 0 1 3 0zM6 12a1.5 1.5 0 1 1-3 0 1.5 1.5 0 0 1 3 0zM13 3.5a1.5 1.5 0 1 1-3 0 1.5 1.5 0 0 1 3 0z',
  check: 'M3 8.5 6.5 12 13 4.5',
  chevron: 'M6 4l4 4-4 4',
  close: 'M4 4l8 8M12 4l-8 8',
  compare: 'M5.5 3v10M5.5 3 3 5.5M5.5 3 8 5.5M10.5 13V3M10.5 13 8 10.5M10.5 13l2.5-2.5',
  copy: 'M6 6h7.5v7.5H6zM10 6V2.5H2.5V10H6',
  download: 'M8 2.5v8M4.5 7.5 8 11l3.5-3.5M3 13.5h10',
  edit: 'M3 13l.7-3L10.5 3.2a1.3 1.3 0 0 1 1.9 0l.4.4a1.3 1.3 0 0 1 0 1.9L6 12.3z',
  file: 'M4 2.5h5l3 3v8H4zM9 2.5v3h3',
  flag: 'M4 14V2.5M4 3h8l-2 3 2 3H4',
  help: 'M8 14.5a6.5 6.5 0 1 0 0-13 6.5 6.5 0 0 0 0 13zM6 6.2a2 2 0 1 1 2.7 1.9c-.5.2-.7.5-.7 1.1M8 11.5v.1',
  inbox: 'M2.5 9.5 4.5 3h7l2 6.5V13h-11zM2.5 9.5H6l.8 1.5h2.4l.8-1.5h3.5',
  inspector: 'M2.5 3h11v10h-11zM10 3v10',
  memory: 'M4 2.5h8v11L8 10.5 4 13.5zM6.5 5.5h3',
  menu: 'M2.5 4.5h11M2.5 8h11M2.5 11.5h11',
  moon: 'M13 9.5A5.5 5.5 0 0 1 6.5 3a5.5 5.5 0 1 0 6.5 6.5z',
  more: 'M3.5 8h.01M8 8h.01M12.5 8h.01',
  plus: 'M8 3v10M3 8h10',
  question: 'M6 5.8a2 2 0 1 1 2.9 1.8c-.6.3-.9.7-.9 1.4M8 11.5v.1',
  runs: 'M1.5 8h3l2-4.5 3 9 2-4.5h3',
  search: 'M7 11.5a4.5 4.5 0 1 0 0-9 4.5 4.5 0 0 0 0 9zM10.5 10.5 14 14',
  send: 'M8 13V3M4 7l4-4 4 4',
  sessions: 'M2.5 3.5h11v7h-6l-3 2.5v-2.5h-2z',
  stop: 'M4.5 4.5h7v7h-7z',
  sun: 'M8 10.5a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5zM8 1.5v1.5M8 13v1.5M1.5 8H3M13 8h1.5M3.4 3.4l1 1M11.6 11.6l1 1M3.4 12.6l1-1M11.6 4.4l1-1',
  timeline:
    'M4.5 2v12M4.5 7c0 2.5 6 1 6 4M6 4.5a1.5 1.5 0 1 1-3 0 1.5 1.5 0 0 1 3 0zM12 12a1.5 1.5 0 1 1-3 0 1.5 1.5 0 0 1 3 0z',
  tool: 'M9.5 3.5a3 3 0 0 1 3.8 3.8L7 13.5 4.5 11l5-5zM9.5 3.5 11 5',
  traces: 'M2.5 3.5h6M5.5 8h6M8.5 12.5h5',
  trash: 'M2.5 4.5h11M6 4.5V2.5h4v2M4 4.5l.7 9h6.6l.7-9',
  warning: 'M8 2 14.5 13.5h-13zM8 6.5v3M8 11.5v.1',
  usage: 'M3 13.5v-4M6.5 13.5v-8M10 13.5v-5M13.5 13.5v-11',
  watch:
    'M1.5 8S4 3.5 8 3.5 14.5 8 14.5 8 12 12.5 8 12.5 1.5 8 1.5 8zM8 10a2 2 0 1 0 0-4 2 2 0 0 0 0 4z',
} as const;

export type IconName = keyof typeof shapes;

/** A small picture beside words, or in a labelled button; never read aloud. */
export function Icon({
  name,
  size = 16,
}: {
  readonly name: IconName;
  readonly size?: number;
}): ReactNode {
  return (
    <svg
      className="icon"
      width={size}
      height={size}
      viewBox="0 0 16 16"
      fill="none"
      stroke="currentColor"
      strokeWidth={name === 'more' ? 2.2 : 1.4}
      strokeLinecap="round"
      strokeLinejoin="round"
      aria-hidden="true"
    >
      <path d={shapes[name]} />
    </svg>
  );
}
