#!/usr/bin/env node
import { run } from './run.ts';
import { createTerminal } from './terminal.ts';

const code = await run(process.argv.slice(2), createTerminal(process));
// What is written to a pipe is still on its way; a timer or a socket that somebody forgot must not keep the shell waiting.
process.exitCode = code;
process.stdout.write('', () => process.stderr.write('', () => process.exit(code)));
