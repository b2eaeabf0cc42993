/** The API as pages of the site: what package.json exports, out of its docstrings. */
import { readFileSync } from 'node:fs'

const { exports } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'))
const doors = Object.values(exports).flatMap((door) => (typeof door === 'object' ? [door.types] : []))

export default {
  plugin: ['typedoc-plugin-markdown'],
  entryPoints: doors.map((types) => types.replace('./dist/', '../src/').replace(/\.d\.ts$/, '.ts')),
  tsconfig: '../tsconfig.build.json',
  out: 'api',
  readme: 'none',
  name: 'API',
  router: 'member',
  entryFileName: 'index.md',
  excludeInternal: true,
  excludePrivate: true,
  excludeExternals: true,
  disableSources: true,
  disableGit: true,
  hideBreadcrumbs: true,
  hidePageHeader: true,
  useCodeBlocks: true,
  expandObjects: true,
  parametersFormat: 'table',
  interfacePropertiesFormat: 'list',
  sanitizeComments: true,
  treatWarningsAsErrors: true,
  validation: { notExported: false, invalidLink: true, notDocumented: false },
}
