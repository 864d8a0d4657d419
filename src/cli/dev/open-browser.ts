import { spawn } from 'node:child_process';

/** Opens an address in the default browser; does nothing where there is none. */
export function openBrowser(url: string, platform: NodeJS.Platform = process.platform): void {
  const [command, ...args] =
    platform === 'darwin'
      ? ['open', url]
      : platform === 'win32'
        ? ['cmd', '/c', 'start', '', url]
        : ['xdg-open', url];
  if (command === undefined) return;
  const child = spawn(command, args, { stdio: 'ignore', detached: true });
  child.on('error', () => {});
  child.unref();
}
