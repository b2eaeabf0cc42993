/** The pages people read: where they are, what they link to, which headings can be linked to, and the code in them. */
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { ROOT } from '../support/build.ts'

export interface Block {
  /** What stands behind the fence, `ts` say; an indented block has none. */
  readonly language: string
  readonly code: string
  /** The line of the fence, from 1. */
  readonly line: number
}

export interface Page {
  /** From the root of the repository, with slashes. */
  readonly name: string
  readonly text: string
  /** The text without code, whose brackets are no links. */
  readonly prose: string
  readonly blocks: readonly Block[]
  readonly anchors: ReadonlySet<string>
  readonly links: readonly string[]
}

/** Every page of ours, the README first. */
export async function allPages(): Promise<Page[]> {
  const top = (await readdir(ROOT)).filter((name) => name.endsWith('.md'))
  const below = await Promise.all(['docs', 'examples', 'docker'].map(markdownIn))
  const names = ['README.md', ...top.filter((name) => name !== 'README.md'), ...below.flat()]
  return Promise.all(names.map(readPage))
}

/** Without what is installed, and what the docs site makes. */
async function markdownIn(folder: string): Promise<string[]> {
  const entries = await readdir(join(ROOT, folder), { withFileTypes: true }).catch(() => [])
  const found = entries.map(async (entry) => {
    const name = `${folder}/${entry.name}`
    if (entry.isDirectory()) return /^(node_modules|api|public|\..*)$/.test(entry.name) ? [] : markdownIn(name)
    return entry.name.endsWith('.md') ? [name] : []
  })
  return (await Promise.all(found)).flat().sort()
}

export async function readPage(name: string): Promise<Page> {
  const text = (await readFile(join(ROOT, name), 'utf8')).replace(/^---\n[\s\S]*?\n---\n/, (front) =>
    front.replace(/[^\n]/g, ''),
  )
  const blocks = [...text.matchAll(/^```([^\n`]*)\n([\s\S]*?)^```/gm)].map(
    ({ 1: language = '', 2: code = '', index }) => ({
      language,
      code,
      line: text.slice(0, index).split('\n').length,
    }),
  )
  const indented = [...text.matchAll(/(?<=\n\n)(?: {4}\S.*\n|\n(?= {4}))+/g)].map(({ 0: code, index }) => ({
    language: '',
    code: code.replace(/^ {4}/gm, ''),
    line: text.slice(0, index).split('\n').length,
  }))
  const prose = text.replace(/^```[\s\S]*?^```/gm, '').replace(/`[^`\n]*`/g, (code) => code.replace(/[[\]()]/g, '_'))
  const links = [...prose.matchAll(/\[(?:[^[\]]|\[[^\]]*\])*\]\(([^)\s]+)\)/g)].map(([, link = '']) => link)
  return { name, text, prose, blocks: [...blocks, ...indented], anchors: anchorsOf(text), links }
}

/** As GitHub makes them; the docs site is told to make the same. */
function anchorsOf(text: string): ReadonlySet<string> {
  const anchors = new Set<string>()
  const bare = text.replace(/^```[\s\S]*?^```/gm, '')
  for (const [, heading = ''] of bare.matchAll(/^#{1,6} +(.+?) *#*$/gm)) {
    const slug = slugOf(heading)
    let unique = slug
    for (let again = 1; anchors.has(unique); again += 1) unique = `${slug}-${again}`
    anchors.add(unique)
  }
  return anchors
}

function slugOf(heading: string): string {
  const shown = heading.replace(/\[([^\]]*)\]\([^)]*\)/g, '$1').replace(/[`*]/g, '')
  return shown
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\p{M}_ -]/gu, '')
    .replaceAll(' ', '-')
}
