import type { ReactNode } from 'react';

/** The last row of a form: a button that submits it, and one that leaves it. */
export function FormButtons({
  children,
  disabled = false,
  onCancel,
}: {
  /** The label of the button that submits the form. */
  readonly children: ReactNode;
  readonly disabled?: boolean;
  readonly onCancel: () => void;
}): ReactNode {
  return (
    <div className="buttons">
      <button type="submit" className="button primary" disabled={disabled}>
        {children}
      </button>
      <button type="button" className="button" onClick={onCancel}>
        Cancel
      </button>
    </div>
  );
}
