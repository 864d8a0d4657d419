import { Component, type ReactNode } from 'react';
import { Empty } from './empty.tsx';

/** Keeps a part that cannot be drawn from taking the whole studio with it. */
export class Boundary extends Component<
  { readonly what: string; readonly children: ReactNode },
  { readonly error: unknown }
> {
  override state = { error: undefined as unknown };

  static getDerivedStateFromError(error: unknown): { error: unknown } {
    return { error };
  }

  override render(): ReactNode {
    const { error } = this.state;
    if (error === undefined) return this.props.children;
    return (
      <Empty title={`The ${this.props.what} cannot be shown.`}>
        <p>{error instanceof Error ? error.message : String(error)}</p>
        <button
          type="button"
          className="button"
          onClick={() => this.setState({ error: undefined })}
        >
          Try again
        </button>
      </Empty>
    );
  }
}
