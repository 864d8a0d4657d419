import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  Application,
  type DeclarationReflection,
  type ProjectReflection,
  ReflectionKind,
  type TypeDocOptions,
} from 'typedoc';
import type { PluginOptions } from 'typedoc-plugin-markdown';

/** Where the API reference is written: the root of the repository, and the folder of the pages. */
export interface ReferencePlace {
  readonly root: string;
  readonly out: string;
}

/**
 * Writes one page per export of every entry point, from the published declarations: they have the doc comments and no function
 * bodies, so TypeDoc needs a third of the time. Throws when an export, a method or a field has no doc comment.
 */
export async function writeReference({ root, out }: ReferencePlace): Promise<void> {
  const types = join(root, 'site/dist/types');
  execFileSync(
    join(root, 'node_modules/.bin/tsc'),
    ['-p', 'tsconfig.build.json', '--outDir', types],
    { cwd: root, stdio: 'inherit' },
  );
  const entries = entryPoints(root, types);
  const app = await Application.bootstrapWithPlugins(settings(root, [...entries.keys()], out));
  const project = await app.convert();
  if (project === undefined) throw new Error('TypeDoc could not read the declarations.');
  nameModules(project, entries);
  const missing = undocumented(project);
  if (missing.length > 0) {
    throw new Error(`These exports have no doc comment:\n${missing.join('\n')}`);
  }
  await app.generateOutputs(project);
  if (app.logger.hasErrors()) throw new Error('TypeDoc reported errors.');
}

/** The declaration file of each entry point of package.json, with the name it is imported by. */
function entryPoints(root: string, types: string): Map<string, string> {
  const { exports } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
    readonly exports: Readonly<Record<string, { readonly types?: string }>>;
  };
  return new Map(
    Object.entries(exports).flatMap(([entry, { types: path }]) =>
      path === undefined
        ? []
        : [[path.replace('./dist/types', types), entry.replace(/^\./, 'waymark')] as const],
    ),
  );
}

function settings(
  root: string,
  entries: string[],
  out: string,
): Partial<TypeDocOptions & PluginOptions> {
  const tsconfig = join(root, 'site/dist/tsconfig.json');
  const options = {
    target: 'es2024',
    lib: ['es2024', 'dom', 'dom.iterable'],
    module: 'nodenext',
    types: ['node'],
    strict: true,
    exactOptionalPropertyTypes: true,
    jsx: 'react-jsx',
    noEmit: true,
  };
  writeFileSync(tsconfig, JSON.stringify({ compilerOptions: options, include: ['types'] }));
  return {
    name: 'Waymark',
    entryPoints: entries,
    tsconfig,
    out,
    plugin: ['typedoc-plugin-markdown'],
    // `npm run check` compiles the same sources.
    skipErrorChecking: true,
    excludeExternals: true,
    excludeInternal: true,
    excludePrivate: true,
    disableSources: true,
    disableGit: true,
    readme: 'none',
    logLevel: 'Warn',
    suppressCommentWarningsInDeclarationFiles: true,
    sort: ['required-first', 'source-order'],
    entryFileName: 'index',
    hidePageHeader: true,
    hideBreadcrumbs: true,
    useCodeBlocks: true,
    expandParameters: true,
    indexFormat: 'table',
    parametersFormat: 'table',
    interfacePropertiesFormat: 'table',
    typeAliasPropertiesFormat: 'table',
    classPropertiesFormat: 'table',
    groupOrder: ['Functions', 'Classes', 'Variables', 'Interfaces', 'Type Aliases'],
    tableColumnSettings: { hideModifiers: true },
    pageTitleTemplates: {
      index: 'API reference',
      module: '{name}',
      // Without the type parameters, which the page lists.
      member: ({ rawName }: { readonly rawName: string }) => rawName.replace(/<.*/, ''),
    },
  } as Partial<TypeDocOptions & PluginOptions>;
}

function nameModules(project: ProjectReflection, entries: ReadonlyMap<string, string>): void {
  for (const module of project.children ?? []) {
    const file = project.getSymbolIdFromReflection(module)?.fileName ?? '';
    const name = [...entries].find(([path]) =>
      path.endsWith(file.replace(/^.*site\/dist/, '')),
    )?.[1];
    if (name === undefined)
      throw new Error(`TypeDoc read "${module.name}", which is no entry point.`);
    module.name = name;
  }
}

/** Exports, methods and fields without a doc comment, as `entry: name`. */
function undocumented(project: ProjectReflection): string[] {
  return (project.children ?? []).flatMap((module) => [
    ...(hasComment(module) ? [] : [module.name]),
    ...(module.children ?? []).flatMap((member) => [
      ...(hasComment(member) ? [] : [`${module.name}: ${member.name}`]),
      ...membersOf(member)
        .filter((child) => child.kindOf(documentedKinds) && !hasComment(child))
        .map((child) => `${module.name}: ${member.name}.${child.name}`),
    ]),
  ]);
}

const documentedKinds =
  ReflectionKind.Method |
  ReflectionKind.Property |
  ReflectionKind.Accessor |
  ReflectionKind.Function;

/** What an interface, a class or an object type has. */
function membersOf(member: DeclarationReflection): readonly DeclarationReflection[] {
  const declared =
    member.type?.type === 'reflection' ? member.type.declaration.children : undefined;
  return [...(member.children ?? []), ...(declared ?? [])];
}

function hasComment(reflection: DeclarationReflection): boolean {
  // A function with properties is also read as a namespace, whose comment is that of the function.
  if (reflection.kindOf([ReflectionKind.Reference, ReflectionKind.Namespace])) return true;
  const { signatures = [], getSignature, comment } = reflection;
  const declared =
    reflection.type?.type === 'reflection' ? reflection.type.declaration.signatures : undefined;
  return (
    comment?.hasVisibleComponent() === true ||
    getSignature?.comment?.hasVisibleComponent() === true ||
    [...signatures, ...(declared ?? [])].some((each) => each.comment?.hasVisibleComponent())
  );
}
