import { goTo } from '../lib/place.ts';
import { commandNames, type PageCommand } from '../shell/command-list.ts';
import { openDialog } from '../shell/dialogs.ts';
import { pages } from '../shell/pages.ts';

/** Opens the palette. */
export function openPalette(changeTheme: () => void): void {
  openDialog.set({ type: 'palette', commands: pageCommands(changeTheme) });
}

/** The commands of every page. */
function pageCommands(changeTheme: () => void): readonly PageCommand[] {
  return [
    ...pages.map(({ view, name }) => ({ name: `Go to ${name}`, run: () => goTo({ view }) })),
    { name: 'Open a replay report', run: () => goTo({ view: 'replay' }) },
    { name: 'Open a crash test report', run: () => goTo({ view: 'replay' }) },
    { name: 'Change the theme', run: changeTheme },
    { ...commandNames.help, run: () => openDialog.set({ type: 'help' }) },
  ];
}
