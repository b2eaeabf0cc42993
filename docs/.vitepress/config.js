/** The site: the pages, with search, and the API from the docstrings (`typedoc.config.js`). */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
import { defineConfig } from 'vitepress'

const DOCS = join(import.meta.dirname ?? new URL('./', import.meta.url).pathname, '..')

/** Makes anchors as GitHub does: a link to a heading works there and here. */
function slugify(heading) {
  return heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\p{M}_ -]/gu, '')
    .replaceAll(' ', '-')
}

/** Shows links to files that are not on the site, such as sources, as text: the address of the repository is not known. */
function withoutOutsideLinks(md) {
  md.core.ruler.push('outside-links', ({ tokens, env }) => {
    for (const { children } of tokens) {
      let outside = false
      for (const token of children ?? []) {
        if (token.type === 'link_open') outside = leadsOutside(token.attrGet('href') ?? '', env.relativePath ?? '')
        if (!outside || !token.type.startsWith('link_')) continue
        if (token.type === 'link_close') outside = false
        Object.assign(token, { type: 'text', tag: '', nesting: 0, content: '', attrs: null })
      }
    }
  })
}

function asOnGitHub(md) {
  withoutOutsideLinks(md)
  withoutDiagrams(md)
}

/** Shows state diagrams as tables of their transitions. GitHub draws them; drawing them here needs a library of megabytes. */
function withoutDiagrams(md) {
  const fence = md.renderer.rules.fence
  md.renderer.rules.fence = (tokens, index, ...rest) => {
    const { info, content } = tokens[index]
    if (info.trim() !== 'mermaid') return fence(tokens, index, ...rest)
    const steps = [...content.matchAll(/^ *(\S+) --> (\S+)(?: : (.*))?$/gm)].map(([, from, to, why = '']) => {
      const cells = [from, '→', to, why].map((cell) => `<td>${md.utils.escapeHtml(cell.replace('[*]', '●'))}</td>`)
      return `<tr>${cells.join('')}</tr>`
    })
    return `<table><tbody>${steps.join('')}</tbody></table>`
  }
}

function leadsOutside(href, page) {
  if (/^[a-z]+:|^#|^\//i.test(href)) return false
  const file = normalize(join(dirname(page), href.split('#')[0] ?? ''))
  return file.startsWith('..') || !/(\.md|\/)$/.test(file)
}

const titleOf = (file) => /^# (.*)$/m.exec(readFileSync(join(DOCS, file), 'utf8'))?.[1] ?? file
const page = (file) => ({ text: titleOf(file).replaceAll('`', ''), link: `/${file}` })
const pages = (folder, names) => {
  const files = names.map((name) => `${folder}/${name}.md`)
  return files.filter((file) => existsSync(join(DOCS, file))).map(page)
}

const SIDEBAR = [
  { text: 'Getting started', items: pages('start', ['embed', 'conductors', 'operate']) },
  {
    text: 'Concepts',
    items: [
      page('ownership.md'),
      page('failure.md'),
      ...pages('guides', ['choosing-a-board', 'other-names', 'diracx']),
      page('reference/terms.md'),
    ],
  },
  {
    text: 'Post jobs',
    items: pages('guides', ['boards', 'results', 'watching', 'stopping', 'many-jobs', 'schedules', 'recurring', 'queues', 'resources', 'limits', 'limiting', 'flow-settings']),
  },
  {
    text: 'Run jobs',
    items: pages('guides', [
      'flows',
      'retries',
      'idempotency',
      'progress',
      'conductors',
      'logbooks',
      'testing',
      'job-after-job',
      'isolation',
      'computing',
      'own-loop',
    ]),
  },
  { text: 'Production', items: pages('guides', ['deploying', 'configuration', 'metrics', 'retention', 'security', 'upgrades', 'sqlite', 'from-file-to-ensemble', 'postgres', 'redis']) },
  {
    text: 'Reference',
    items: [
      ...pages('reference', ['cli', 'options', 'events', 'errors', 'states']),
      { text: 'API', link: '/api/' },
    ],
  },
  { text: 'TaskFlow', items: pages('guides', ['taskflow', 'taskflow-shared']) },
  { text: 'ZooKeeper', items: [...pages('guides', ['zookeeper-client']), page('reference/zookeeper-conformance.md')] },
  { text: 'Decisions', collapsed: true, items: decisions() },
]

function decisions() {
  const names = readdirSync(join(DOCS, 'decisions')).filter((name) => /^\d.*\.md$/.test(name))
  return ['index.md', ...names.sort()].map((name) => page(`decisions/${name}`))
}

/** Lists modules and kinds only: the page of a module lists its own pages, and a list of all would be on every page. */
function apiSidebar(folder = 'api/jobboard') {
  if (!existsSync(join(DOCS, folder, 'index.md'))) return []
  const headings = readFileSync(join(DOCS, folder, 'index.md'), 'utf8').matchAll(/^## (.*)$/gm)
  const kinds = [...headings].map(([, kind]) => ({ text: kind, link: `/${folder}/#${slugify(kind)}` }))
  const folders = readdirSync(join(DOCS, folder), { withFileTypes: true }).filter((entry) => entry.isDirectory())
  const inner = folders.flatMap(({ name }) => apiSidebar(`${folder}/${name}`))
  return [{ text: folder.replace('api/', ''), link: `/${folder}/`, items: kinds }, ...inner]
}

/** Ranks guides above decisions and the API, and other products' words above all. The browser runs it: it uses nothing outside. */
function boostDocument(id) {
  if (id.startsWith('/api/')) return 0.2
  if (id.startsWith('/decisions/')) return 0.5
  return id.startsWith('/guides/other-names') ? 3 : 1
}

export default defineConfig({
  title: 'jobboard',
  description: 'Post work, and have it done by exactly one owner at a time',
  lang: 'en',
  // A dead link fails the build.
  ignoreDeadLinks: false,
  markdown: { anchor: { slugify }, config: asOnGitHub },
  themeConfig: {
    search: { provider: 'local', options: { miniSearch: { searchOptions: { boostDocument } } } },
    outline: [2, 3],
    nav: [
      { text: 'Start', link: '/start/embed' },
      { text: 'When something dies', link: '/failure' },
      { text: 'Command line', link: '/reference/cli' },
      { text: 'API', link: '/api/' },
    ],
    sidebar: { '/': SIDEBAR, '/api/': [{ text: '← Guides', link: '/' }, ...apiSidebar()] },
  },
})
