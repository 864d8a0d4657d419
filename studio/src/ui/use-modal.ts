import { type RefObject, useEffect, useRef } from 'react';

/** Opens a `<dialog>` over everything else for as long as it is on the page; the focus then returns to where it was. */
export function useModal(): RefObject<HTMLDialogElement | null> {
  const ref = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const dialog = ref.current;
    if (dialog && !dialog.open) dialog.showModal();
    return () => dialog?.close();
  }, []);
  return ref;
}
