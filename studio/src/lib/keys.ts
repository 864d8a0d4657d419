/** Whether the keyboard of this machine has the keys of a Mac. */
const isMac = /Mac|iPhone|iPad/.test(navigator.platform);

/** The names of keys as the keyboard of this machine shows them. */
export const keyNames: {
  readonly enter: string;
  readonly shiftEnter: string;
  readonly modEnter: string;
  readonly modShiftEnter: string;
  readonly modK: string;
  readonly escape: string;
} = isMac
  ? {
      enter: '⏎',
      shiftEnter: '⇧⏎',
      modEnter: '⌘⏎',
      modShiftEnter: '⇧⌘⏎',
      modK: '⌘K',
      escape: 'esc',
    }
  : {
      enter: 'Enter',
      shiftEnter: 'Shift+Enter',
      modEnter: 'Ctrl+Enter',
      modShiftEnter: 'Ctrl+Shift+Enter',
      modK: 'Ctrl+K',
      escape: 'Esc',
    };

/** The name of a key that a command has: a capital letter is typed with Shift. */
export function keyName(key: string): string {
  if (!/^[A-Z]$/.test(key)) return key;
  return isMac ? `⇧${key}` : `Shift+${key}`;
}

/** Whether a key was pressed together with the command key of this machine. */
export function isWithMod({ metaKey, ctrlKey, altKey, shiftKey }: KeyboardEvent): boolean {
  return (isMac ? metaKey && !ctrlKey : ctrlKey && !metaKey) && !altKey && !shiftKey;
}
