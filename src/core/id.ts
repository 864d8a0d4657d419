import { randomBytes } from './platform.ts';
import type { Clock } from './time.ts';

type FillRandom = (into: Uint8Array<ArrayBuffer>) => Uint8Array<ArrayBuffer>;

/** Creates a generator of time-ordered UUIDs (version 7); the ids of one generator sort by creation order. */
export function createIds(clock: Clock, random: FillRandom = randomBytes): () => string {
  const next = createGenerator(random);
  return () => next(clock.now());
}

const sharedGenerator = createGenerator(randomBytes);

/** A time-ordered UUID (version 7); greater than every one this process made before, also when time stands still. */
export function uuidv7(now: number, random?: FillRandom): string {
  return random ? createGenerator(random)(now) : sharedGenerator(now);
}

const hex = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0'));

// 48 bits of time, 12 bits that count within a millisecond, 62 random bits (RFC 9562, 6.2 method 1).
function createGenerator(random: FillRandom): (now: number) => string {
  const pool = new Uint8Array(1024);
  let used = pool.length;
  let time = -1;
  let count = 0;
  let prefix = '';

  const byte = (): number => {
    if (used === pool.length) {
      random(pool);
      used = 0;
    }
    return pool[used++] ?? 0;
  };

  const moveTo = (now: number): void => {
    time = now;
    // Start low, so that there is room to count within this millisecond.
    count = ((byte() & 0x07) << 8) | byte();
    const digits = now.toString(16).padStart(12, '0');
    prefix = `${digits.slice(0, 8)}-${digits.slice(8)}-7`;
  };

  return (now) => {
    const whole = Math.floor(now);
    if (whole > time) moveTo(whole);
    else if (++count > 0xfff) moveTo(time + 1);
    const counter = (0x1000 | count).toString(16).slice(1);
    const variant = hex[(byte() & 0x3f) | 0x80];
    const parts = [prefix, counter, '-', variant, hex[byte()], '-'];
    for (let at = 0; at < 6; at++) parts.push(hex[byte()]);
    // Joined, not added: V8 keeps a concatenation as a tree of its parts, ten times the size, until it is read.
    return parts.join('');
  };
}
