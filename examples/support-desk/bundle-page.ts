import { fileURLToPath } from 'node:url';
import react from '@vitejs/plugin-react';
import { build } from 'vite';

/** The script of the page. Your project would build it once, before it is deployed. */
export async function bundlePage(): Promise<string> {
  const built = await build({
    configFile: false,
    logLevel: 'warn',
    root: fileURLToPath(new URL('../..', import.meta.url)),
    plugins: [react()],
    build: {
      write: false,
      rolldownOptions: { input: fileURLToPath(new URL('page/main.tsx', import.meta.url)) },
    },
  });
  const [result] = Array.isArray(built) ? built : [built];
  if (!result || !('output' in result)) throw new Error('The page could not be built.');
  return result.output[0].code;
}
