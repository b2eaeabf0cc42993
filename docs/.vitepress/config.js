/** The site: the pages as they are, with search, and the API out of the docstrings (`typedoc.config.js`). */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
import { defineConfig } from 'vitepress'

const DOCS = join(import.meta.dirname ?? new URL('./', import.meta.url).pathname, '..')

/** As GitHub does, so that a link to a heading leads to the same place there and here. */
function slugify(heading) {
  return heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\p{M}_ -]/gu, '')
    .replaceAll(' ', '-')
}

/** Links to what is not on the site, sources say, are left as text: nobody has said where the repository is. */
function withoutOutwardLinks(md) {
  md.core.ruler.push('outward-links', ({ tokens, env }) => {
    for (const { children } of tokens) {
      let outward = false
      for (const token of children ?? []) {
        if (token.type === 'link_open') outward = leadsOut(token.attrGet('href') ?? '', env.relativePath ?? '')
        if (!outward || !token.type.startsWith('link_')) continue
        if (token.type === 'link_close') outward = false
        Object.assign(token, { type: 'text', tag: '', nesting: 0, content: '', attrs: null })
      }
    }
  })
}

function asOnGitHub(md) {
  withoutOutwardLinks(md)
  withoutDiagrams(md)
}

/** GitHub draws state diagrams; here their steps are listed, which takes no library of some megabytes. */
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

function leadsOut(href, page) {
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
  { text: 'Concepts', items: [page('ownership.md'), page('failure.md'), page('guides/choosing-a-board.md'), page('guides/other-names.md')] },
  {
    text: 'Boards',
    items: pages('guides', ['boards', 'posting-many', 'results', 'own-loop', 'resources', 'limiting', 'retries', 'idempotency', 'stopping', 'watching']),
  },
  { text: 'Work', items: pages('guides', ['flows', 'job-after-job', 'recurring', 'computing', 'conductors', 'logbooks', 'testing']) },
  { text: 'Running it', items: pages('guides', ['deploying', 'security', 'upgrades', 'postgres', 'redis', 'c-client']) },
  { text: 'TaskFlow', items: pages('guides', ['taskflow', 'taskflow-shared']) },
  { text: 'ZooKeeper', items: pages('guides', ['zookeeper-client']) },
  { text: 'Reference', items: pages('reference', ['terms', 'cli', 'options', 'events', 'errors', 'states', 'zookeeper-conformance']) },
  { text: 'API', items: [{ text: 'All that is exported', link: '/api/' }] },
  { text: 'Decisions', collapsed: true, items: decisions() },
]

function decisions() {
  const names = readdirSync(join(DOCS, 'decisions')).filter((name) => name.endsWith('.md'))
  return names.sort().map((name) => page(`decisions/${name}`))
}

/** Modules and kinds only: the pages of a module are listed on its own, and a list of all would be on each of them. */
function apiSidebar(folder = 'api/jobboard') {
  if (!existsSync(join(DOCS, folder, 'index.md'))) return []
  const headings = readFileSync(join(DOCS, folder, 'index.md'), 'utf8').matchAll(/^## (.*)$/gm)
  const kinds = [...headings].map(([, kind]) => ({ text: kind, link: `/${folder}/#${slugify(kind)}` }))
  const folders = readdirSync(join(DOCS, folder), { withFileTypes: true }).filter((entry) => entry.isDirectory())
  const inner = folders.flatMap(({ name }) => apiSidebar(`${folder}/${name}`))
  return [{ text: folder.replace('api/', ''), link: `/${folder}/`, items: kinds }, ...inner]
}

export default defineConfig({
  title: 'jobboard',
  description: 'Post work, and have it done by exactly one owner at a time',
  lang: 'en',
  // A link that leads nowhere fails the build.
  ignoreDeadLinks: false,
  markdown: { anchor: { slugify }, config: asOnGitHub },
  themeConfig: {
    search: { provider: 'local' },
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
