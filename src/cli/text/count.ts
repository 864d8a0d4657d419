/** A number with its noun: `1 session`, `2 sessions`. */
export function count(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? '' : 's'}`;
}
