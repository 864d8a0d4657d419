import type { OpenBackground } from './background.ts';

const modules: Readonly<Record<string, () => Promise<{ readonly open: OpenBackground }>>> = {
  waymark: () => import('./waymark-background.ts'),
  genkit: () => import('./genkit-background.ts'),
};

/** Loads a system that has runs in the background. */
export async function loadBackground(system: string): Promise<OpenBackground> {
  const module = modules[system];
  if (module === undefined) throw new Error(`"${system}" has no runs in the background.`);
  return (await module()).open;
}
