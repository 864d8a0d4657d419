/** An instruction of a Dockerfile. */
export interface Instruction {
  readonly name: string;
  readonly text: string;
}

/** The stages of a Dockerfile, each with its instructions; the first one of each is FROM. */
export function parseDockerfile(text: string): Instruction[][] {
  const lines = text
    .replace(/^\s*#.*\n/gm, '')
    .replace(/\\\n/g, ' ')
    .split('\n')
    .filter((line) => line.trim() !== '');
  const stages: Instruction[][] = [];
  for (const line of lines) {
    const [, name = '', rest = ''] = /^([A-Z]+) (.*)$/.exec(line) ?? [];
    if (!known.has(name)) throw new Error(`Not an instruction: ${line}`);
    if (name === 'FROM') stages.push([]);
    const stage = stages.at(-1);
    if (stage === undefined) throw new Error(`Before the first FROM: ${line}`);
    stage.push({ name, text: rest });
  }
  return stages;
}

const known = new Set([
  ...['FROM', 'WORKDIR', 'COPY', 'RUN', 'ENV', 'USER', 'EXPOSE', 'HEALTHCHECK', 'CMD'],
]);

/** The last instruction of this name in a stage. */
export function lastOf(stage: readonly Instruction[], name: string): string | undefined {
  return stage.findLast((each) => each.name === name)?.text;
}

/** The command of a CMD or HEALTHCHECK in its exec form; the shell form would not pass signals on. */
export function execForm(text: string): string[] {
  const list = /\[.*\]$/.exec(text)?.[0];
  if (list === undefined) throw new Error(`Not in the exec form: ${text}`);
  return JSON.parse(list) as string[];
}
