// Fills a small heap until V8 has marked and collected it, and sends the kinds of collections that Node has reported.
import { PerformanceObserver } from 'node:perf_hooks';
import { setImmediate } from 'node:timers/promises';
import { beginOfMarking, fullCollection, kindOf } from '../../src/store/rules/between-steps.ts';

const kinds: (number | undefined)[] = [];
const observer = new PerformanceObserver((list) => {
  for (const entry of list.getEntries()) kinds.push(kindOf(entry));
});
observer.observe({ entryTypes: ['gc'] });
const isMarked = (): boolean =>
  kinds.includes(beginOfMarking) && kinds.includes(fullCollection, kinds.indexOf(beginOfMarking));
let kept: object[] = [];
for (let rounds = 0; rounds < 50_000 && !isMarked(); rounds++) {
  for (let n = 0; n < 200; n++) kept.push({ n, text: `${n} ${rounds}` });
  if (kept.length > 400_000) kept = [];
  await setImmediate();
}
process.send?.({ kinds });
