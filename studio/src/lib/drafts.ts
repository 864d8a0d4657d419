import { type Dispatch, type SetStateAction, useEffect, useState } from 'react';

/** The text that is being written to an agent. It survives a reload and a visit to another agent. */
export function useDraft(agent: string): readonly [string, Dispatch<SetStateAction<string>>] {
  const key = `waymark.draft.${agent}`;
  const [text, setText] = useState(() => read(key));
  useEffect(() => {
    try {
      if (text === '') sessionStorage.removeItem(key);
      else sessionStorage.setItem(key, text);
    } catch {
      // Without storage, or when it is full, the text is kept while the page is open.
    }
  }, [key, text]);
  return [text, setText];
}

function read(key: string): string {
  try {
    return sessionStorage.getItem(key) ?? '';
  } catch {
    return '';
  }
}
