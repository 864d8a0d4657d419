const second = 1_000;
const minute = 60 * second;
const hour = 60 * minute;
const day = 24 * hour;

// Made once: making one takes longer than using it a hundred times.
const timeForm = new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit' });
const fullForm = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium' });
const dayForm = new Intl.DateTimeFormat(undefined, { day: 'numeric', month: 'short' });

/** How long something took: `42 ms`, `1.3 s`, `2 min 5 s`. */
export function duration(ms: number): string {
  if (ms < second) return `${Math.max(0, Math.round(ms))} ms`;
  if (ms < 10 * second) return `${(ms / second).toFixed(1)} s`;
  if (ms < minute) return `${Math.round(ms / second)} s`;
  if (ms < hour) return `${Math.floor(ms / minute)} min ${Math.floor((ms % minute) / second)} s`;
  return `${Math.floor(ms / hour)} h ${Math.floor((ms % hour) / minute)} min`;
}

/** How long ago, in few letters: `now`, `5m`, `3h`, `12 Mar`. */
export function ago(iso: string, now: number): string {
  const ms = now - Date.parse(iso);
  if (ms < minute) return 'now';
  if (ms < hour) return `${Math.floor(ms / minute)}m`;
  if (ms < day) return `${Math.floor(ms / hour)}h`;
  if (ms < 7 * day) return `${Math.floor(ms / day)}d`;
  return dayForm.format(new Date(iso));
}

/** The time of day, with the day when it is another one. */
export function clockTime(iso: string, now: number): string {
  const date = new Date(iso);
  const time = timeForm.format(date);
  const isToday = date.toDateString() === new Date(now).toDateString();
  return isToday ? time : `${dayForm.format(date)}, ${time}`;
}

/** A time in full. */
export function fullTime(iso: string): string {
  return fullForm.format(new Date(iso));
}

/** A count in few letters: `940`, `1.2k`, `3.4M`. */
export function count(n: number): string {
  if (n < 1_000) return String(n);
  if (n < 1_000_000) return `${(n / 1_000).toFixed(n < 10_000 ? 1 : 0)}k`;
  return `${(n / 1_000_000).toFixed(1)}M`;
}

/** A size: `512 B`, `1.2 KB`, `3.4 MB`. */
export function bytes(n: number): string {
  if (n < 1_000) return `${n} B`;
  if (n < 1_000_000) return `${(n / 1_000).toFixed(n < 10_000 ? 1 : 0)} KB`;
  return `${(n / 1_000_000).toFixed(1)} MB`;
}

/** `1 message`, `2 messages`. */
export function plural(n: number, one: string, many = `${one}s`): string {
  return `${n.toLocaleString()} ${n === 1 ? one : many}`;
}

/** The end of an id, which is what tells time-ordered ids apart. */
export function shortId(id: string): string {
  return id.length > 12 ? `…${id.slice(-6)}` : id;
}
