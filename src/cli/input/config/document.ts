/** Parses the YAML of `jobboard.yaml`: its data, the places of its values, and its syntax errors. */

import {
  type Alias,
  type Document,
  isAlias,
  isMap,
  isPair,
  isScalar,
  LineCounter,
  type Node,
  parseDocument,
  type Scalar,
  visit,
} from 'yaml'
import { messageOf } from '../../../core/errors.ts'
import { isExactNumber } from '../../../core/json.ts'
import { firstLine, type Path } from './faults.ts'

/** A mistake at a place of the text. */
interface YamlFault {
  readonly offset: number
  readonly message: string
}

export class YamlDocument {
  readonly #document: Document
  readonly #lines: LineCounter
  readonly #shown: string
  /** The values; undefined if the text has none that can be used. */
  readonly data: unknown
  /** The mistakes, as `FILE:LINE:COLUMN: what`, in the order of their places. */
  readonly faults: readonly string[]

  /** @param shown the path of the file for people */
  constructor(text: string, { shown }: { readonly shown: string }) {
    this.#lines = new LineCounter()
    this.#shown = shown
    this.#document = parseDocument(text, { lineCounter: this.#lines, prettyErrors: false, logLevel: 'error' })
    const document = this.#document
    const faults = [encodingFaults(text), syntaxFaults(document), aliasFaults(document), numberFaults(document)].flat()
    // The rest of a file with a duplicate key, or with a second document, can be read all the same.
    const isReadable = faults.every(({ isHarmless }) => isHarmless)
    const read = isReadable ? readData(this.#document) : { data: undefined, faults: [] }
    this.data = read.data
    this.faults = [...faults, ...read.faults]
      .sort((a, b) => a.offset - b.offset)
      .map(({ offset, message }) => `${this.#at(offset)}: ${message}`)
  }

  /** Returns the place of a value, `FILE:LINE:COLUMN`: the place of its key if it is in a map, otherwise the place of the value around it. */
  place(path: Path): string {
    return this.#at(this.#offset(path))
  }

  /** Returns the line of a value, from 1. */
  line(path: Path): number {
    return this.#lines.linePos(this.#offset(path)).line
  }

  #at(offset: number): string {
    const { line, col } = this.#lines.linePos(offset)
    return `${this.#shown}:${line}:${col}`
  }

  #offset(path: Path): number {
    let at: unknown = this.#document.contents
    let offset = (this.#document.contents as Node | null)?.range?.[0] ?? 0
    for (const part of path) {
      if (isAlias(at)) at = at.resolve(this.#document)
      if (!isMap(at)) break
      const pair = at.items.find(
        (item) => isPair(item) && isScalar(item.key) && String(item.key.value) === String(part),
      )
      if (!pair) break
      offset = isScalar(pair.key) ? (pair.key.range?.[0] ?? offset) : offset
      at = pair.value
    }
    return offset
  }
}

/** Returns a fault for a text that was not UTF-8: UTF-16 has zero bytes, and other wrong bytes were read as U+FFFD. */
function encodingFaults(text: string): (YamlFault & { readonly isHarmless: false })[] {
  const offset = text.search(/[\0\ufffd]/)
  if (offset < 0) return []
  return [{ offset, message: 'this is not a text in UTF-8; save the file as UTF-8', isHarmless: false }]
}

function syntaxFaults({ errors, warnings }: Document): (YamlFault & { readonly isHarmless: boolean })[] {
  const tab = errors.find(({ code }) => code === 'TAB_AS_INDENT')
  // Only the first tab is reported: the parser reports an error for each further tab, and more errors that follow from them.
  if (tab) return [{ offset: tab.pos[0], message: 'YAML is indented with blanks: replace the tabs', isHarmless: false }]
  return [...errors, ...warnings].map(({ code, pos: [offset], message }) => {
    if (code === 'MULTIPLE_DOCS')
      return {
        offset,
        message: 'a second document begins here; the file must have one: remove the ---',
        isHarmless: true,
      }
    // The name of a tag may be a password.
    if (code === 'TAG_RESOLVE_FAILED')
      return { offset, message: 'this tag is not known; put a value that begins with ! in quotes', isHarmless: false }
    const advice =
      code === 'DUPLICATE_KEY'
        ? 'this key is there twice: remove one'
        : 'check the indentation and the colons here, and put a value that holds ": " in quotes'
    const what = `this is not valid YAML (${firstLine(message)}); ${advice}`
    return { offset, message: what, isHarmless: code === 'DUPLICATE_KEY' }
  })
}

/** Returns the decimal numbers that JavaScript would read as others. */
function numberFaults(document: Document): (YamlFault & { readonly isHarmless: false })[] {
  const faults: (YamlFault & { readonly isHarmless: false })[] = []
  const message = 'JavaScript cannot represent this number: put it in quotes'
  visit(document, {
    Scalar: (_, { value, source, range }: Scalar) => {
      if (typeof value !== 'number' || !/^[-+]?[\d.]+(e[-+]?\d+)?$/i.test(source ?? '')) return
      if (!isExactNumber(source ?? '')) faults.push({ offset: range?.[0] ?? 0, message, isHarmless: false })
    },
  })
  return faults
}

/** Returns the aliases without an anchor, and those within what they stand for. */
function aliasFaults(document: Document): (YamlFault & { readonly isHarmless: false })[] {
  const faults: (YamlFault & { readonly isHarmless: false })[] = []
  // The latest node before the alias has the anchor. `alias.resolve` would walk through the document for each alias.
  const anchors = new Map<string, Node>()
  visit(document, {
    Alias: (_, alias: Alias) => {
      const offset = alias.range?.[0] ?? 0
      const source = anchors.get(alias.source)
      const [start = 0, end = 0] = source?.range ?? []
      // The name of an anchor that is not there may be a password.
      const message = !source
        ? 'there is no anchor before this alias; put a value that begins with * in quotes'
        : start <= offset && offset < end
          ? `*${alias.source} is within its own anchor &${alias.source}: a value cannot contain itself`
          : undefined
      if (message !== undefined) faults.push({ offset, message, isHarmless: false })
    },
    Node: (_, node: Node) => {
      const { anchor } = node as { readonly anchor?: string }
      if (anchor !== undefined) anchors.set(anchor, node)
    },
  })
  return faults
}

/** The number of values that aliases may make. */
const MAX_ALIASED_VALUES = 10_000

function readData(document: Document): { readonly data: unknown; readonly faults: readonly YamlFault[] } {
  try {
    return { data: document.toJS({ maxAliasCount: MAX_ALIASED_VALUES }) ?? {}, faults: [] }
  } catch (error) {
    const message = `its aliases make too many values (${messageOf(error)})`
    return { data: undefined, faults: [{ offset: 0, message }] }
  }
}
