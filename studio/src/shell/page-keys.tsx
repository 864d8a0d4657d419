import { type ReactNode, useLayoutEffect } from 'react';
import { isWithMod } from '../lib/keys.ts';
import { openPalette } from '../palette/open-palette.ts';
import { commandNames } from './command-list.ts';
import { openDialog } from './dialogs.ts';
import { isWriting } from './is-writing.ts';

/** The keys that work on every page: that of the palette, also where one writes, and that of the help. */
export function PageKeys({ changeTheme }: { readonly changeTheme: () => void }): ReactNode {
  // With the page itself: no key of an early hand is lost.
  useLayoutEffect(() => {
    const onKeyDown = (event: KeyboardEvent): void => {
      const isPalette = event.key.toLowerCase() === 'k' && isWithMod(event);
      const hasMod = event.metaKey || event.ctrlKey || event.altKey;
      const isHelp = event.key === commandNames.help.key && !hasMod && !isWriting(event.target);
      if (!isPalette && !isHelp) return;
      // Browsers use the key of the palette for their address bar.
      event.preventDefault();
      if (document.querySelector('dialog[open]')) return;
      if (isPalette) openPalette(changeTheme);
      else openDialog.set({ type: 'help' });
    };
    addEventListener('keydown', onKeyDown);
    return () => removeEventListener('keydown', onKeyDown);
  }, [changeTheme]);
  return null;
}
