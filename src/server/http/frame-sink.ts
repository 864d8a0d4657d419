/** Where the frames of a response go. */
export interface FrameSink {
  /** Whether to wait for `pulled` before the next write. */
  isFull(): boolean;
  write(text: string): void;
  close(): void;
  fail(): void;
}

/** What a {@link FrameSink} reports about its client. */
export interface FrameSource {
  /** There is room again. */
  pulled(): void;
  /** The client has disconnected. */
  left(): void;
}
