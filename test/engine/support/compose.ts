import { parse } from 'yaml';

/** What the tests read of a service. */
export interface Service {
  readonly command?: string;
  readonly environment?: Readonly<Record<string, string>>;
  readonly depends_on?: Readonly<Record<string, { readonly condition: string }>>;
  readonly healthcheck?: { readonly test?: readonly string[]; readonly disable?: boolean };
  readonly stop_grace_period?: string;
  readonly configs?: readonly { readonly source: string; readonly target: string }[];
}

/** What the tests read of a compose file. */
export interface Compose {
  readonly services: Readonly<Record<string, Service>>;
  readonly configs: Readonly<Record<string, { readonly content: string }>>;
}

/** Parses a compose file, with the variables in it; one that is missing is an error, as it is for Docker Compose. */
export function parseCompose(text: string, variables: Readonly<Record<string, string>>): Compose {
  const filled = text.replace(/\$\{(\w+):\?([^}]*)\}/g, (_, name: string, message: string) => {
    const value = variables[name];
    if (value === undefined) throw new Error(message);
    return value;
  });
  return parse(filled, { merge: true }) as Compose;
}

/** The services in an order in which each comes after those it depends on. */
export function startOrder({ services }: Compose): string[] {
  const order: string[] = [];
  const add = (name: string, above: readonly string[] = []): void => {
    if (above.includes(name)) throw new Error(`${name} depends on itself.`);
    if (order.includes(name)) return;
    const service = services[name];
    if (service === undefined) throw new Error(`There is no service ${name}.`);
    for (const needed of Object.keys(service.depends_on ?? {})) add(needed, [...above, name]);
    order.push(name);
  };
  for (const name of Object.keys(services)) add(name);
  return order;
}
