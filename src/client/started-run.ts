/** The id of a run, known once its turn has started; `undefined` if it ends without one. */
export class StartedRun {
  readonly #known = Promise.withResolvers<string | undefined>();

  get id(): Promise<string | undefined> {
    return this.#known.promise;
  }

  tell(id: string | undefined): void {
    this.#known.resolve(id);
  }
}
