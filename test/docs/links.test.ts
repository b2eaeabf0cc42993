/** Links on every page lead to files and headings that are there; those of what is published, to what is published. */
import { access, readFile } from 'node:fs/promises'
import { dirname, join, relative, resolve } from 'node:path'
import { expect, test } from 'vitest'
import { ROOT } from '../support/build.ts'
import { allPages, type Page } from './pages.ts'

const PAGES = await allPages()

interface Link {
  readonly from: string
  readonly to: string
  /** From the root. */
  readonly file: string
  readonly anchor: string | undefined
}

const LINKS: readonly Link[] = PAGES.flatMap((page) => page.links.filter(isRelative).map((to) => linkOf(page, to)))

function isRelative(link: string): boolean {
  return !/^[a-z]+:/i.test(link)
}

function linkOf({ name }: Page, to: string): Link {
  const [path = '', anchor] = to.split('#')
  const file = path === '' ? name : relative(ROOT, resolve(ROOT, dirname(name), path))
  return { from: name, to, file, anchor }
}

test('there are links', () => {
  expect(PAGES.length).toBeGreaterThan(30)
  expect(LINKS.length).toBeGreaterThan(150)
})

test('files that are linked to are there', async () => {
  const dead = await Promise.all(
    LINKS.map(async ({ from, to, file }) => {
      const there = await access(join(ROOT, file)).then(
        () => true,
        () => false,
      )
      return there ? [] : [`${from}: ${to}`]
    }),
  )
  expect(dead.flat()).toEqual([])
})

test('headings that are linked to are there', () => {
  const dead = LINKS.filter(({ file, anchor }) => {
    const page = PAGES.find(({ name }) => name === file)
    return anchor !== undefined && !page?.anchors.has(anchor)
  })
  expect(dead.map(({ from, to }) => `${from}: ${to}`)).toEqual([])
})

/** Not published: the README and the docs are looked at in the repository and on the site, which have them. */
const PICTURES = /^docs\/.*\.png$/

/** Not published, and of no use without the repository. */
const FOR_DEVELOPERS = ['CONTRIBUTING.md', 'docs/reference/zookeeper-conformance.md']

test('what is published links to nothing that is not', async () => {
  const { files } = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8')) as { files: string[] }
  // npm always packs these.
  const packed = [...files, 'README.md', 'LICENSE', 'package.json']
  const isPacked = (name: string) =>
    !files.includes(`!${name}`) &&
    !PICTURES.test(name) &&
    packed.some((file) => name === file || name.startsWith(`${file}/`))
  const unpacked = LINKS.filter(({ from, file }) => {
    return isPacked(from) && !isPacked(file) && !FOR_DEVELOPERS.includes(file) && !PICTURES.test(file)
  })
  expect(unpacked.map(({ from, to }) => `${from}: ${to}`)).toEqual([])
})

test('every page of docs can be reached from the README', () => {
  const reached = new Set<string>(['README.md'])
  for (const name of reached) {
    for (const { from, file } of LINKS) {
      if (from !== name) continue
      reached.add(file)
      // A folder that is linked to shows all that is in it.
      for (const page of PAGES) if (page.name.startsWith(`${file}/`)) reached.add(page.name)
    }
  }
  for (const name of FOR_DEVELOPERS) reached.add(name)
  expect(PAGES.map(({ name }) => name).filter((name) => name.startsWith('docs/') && !reached.has(name))).toEqual([])
})

test('the index of decisions lists each of them once, with its title', () => {
  const index = PAGES.find(({ name }) => name === 'docs/decisions/index.md')?.text ?? ''
  const listed = [...index.matchAll(/^\| (\d+) \| \[(.*)\]\((.*)\) \|$/gm)].map(([, ...parts]) => parts.join(' '))
  const there = PAGES.flatMap(({ name, text }) => {
    const [, title] = /^# (\d+\. .*)$/m.exec(text) ?? []
    const file = name.replace('docs/decisions/', '')
    return file !== name && title ? [`${title.replace('. ', ' ')} ${file}`] : []
  })
  expect(listed.toSorted()).toEqual(there.toSorted())
})

test('tests that a page names are there', async () => {
  const named = PAGES.flatMap(({ name, text }) => {
    // Decisions tell of the day they were made.
    if (name.startsWith('docs/decisions/') || name === 'CHANGELOG.md') return []
    return [...text.matchAll(/`(test\/[a-z/.-]+\.ts)`/g)].map(([, file = '']) => file)
  })
  expect(named.length).toBeGreaterThan(10)
  await Promise.all(named.map((file) => access(join(ROOT, file))))
})
