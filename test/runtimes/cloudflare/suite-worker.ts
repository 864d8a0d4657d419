// What Workers that run the conformance suites need.
import * as dotprompt from 'dotprompt';
import { runTest } from './vitest.ts';

// A Worker finds no optional packages by itself. Prompts of the suite have placeholders.
const { getBuiltinModule } = process;
process.getBuiltinModule = ((name: string) =>
  name === 'node:module'
    ? { createRequire: () => () => dotprompt }
    : getBuiltinModule(name)) as typeof getBuiltinModule;

/** A binding of tests that makes functions of texts. */
export interface Eval {
  newFunction(code: string, name: string, ...parameters: string[]): unknown;
}

/** Prompts are compiled to functions, which a Worker may make only through a binding for tests. */
export function allowFunctions({ EVAL }: { readonly EVAL: Eval }): void {
  const make = (parts: unknown[]) => {
    const texts = parts.map(String);
    return EVAL.newFunction(texts.pop() ?? '', 'made', ...texts);
  };
  globalThis.Function = new Proxy(Function, {
    apply: (_, __, parts) => make(parts),
    construct: (_, parts) => make(parts) as object,
  });
}

/** Runs a test, and says how it ended. */
export async function answerFor(at: number): Promise<Response> {
  try {
    return Response.json({ result: await runTest(at) });
  } catch (error) {
    const { stack } = error as Error;
    return Response.json({ result: 'failed', error: `${stack} ${JSON.stringify(error)}` });
  }
}
