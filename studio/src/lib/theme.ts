import { useEffect, useState } from 'react';

/** How the studio looks: as the system does, or always one way. */
export type Theme = 'system' | 'light' | 'dark';

const key = 'waymark.theme';

/** The theme, kept for the next visit, and how to go to the next one. */
export function useTheme(): readonly [Theme, () => void] {
  const [theme, setTheme] = useState<Theme>(readTheme);
  useEffect(() => {
    document.documentElement.dataset.theme = theme;
    try {
      localStorage.setItem(key, theme);
    } catch {
      // Where nothing can be kept, the choice holds for this visit.
    }
  }, [theme]);
  return [theme, () => setTheme(next[theme])];
}

const next: Readonly<Record<Theme, Theme>> = { system: 'light', light: 'dark', dark: 'system' };

function readTheme(): Theme {
  try {
    const kept = localStorage.getItem(key);
    return kept === 'light' || kept === 'dark' ? kept : 'system';
  } catch {
    return 'system';
  }
}
