/** Words that complete the search in the box: names, flows and keys of the board. */
import { useEffect, useState } from 'preact/hooks'
import { read } from './api.ts'
import { term } from './format.ts'
import { onBoard } from './session.ts'

/** People type on: the server is asked when they pause. */
const PAUSE_MS = 200
const FIELDS: readonly string[] = ['name', 'flow', 'key']

interface Suggestions {
  readonly suggestions: readonly { readonly text: string; readonly kind: string }[]
}

/** Returns the searches that complete the one in the box, and what is called with it as it is typed. */
export function useSuggestions(): readonly [readonly string[], (typed: string) => void] {
  const [typed, setTyped] = useState('')
  const [found, setFound] = useState<readonly string[]>([])
  useEffect(() => {
    const last = /(?:([a-z]+):)?(\S*)$/i.exec(typed)
    const [, field, word = ''] = last ?? []
    if (word === '' || (field !== undefined && !FIELDS.includes(field.toLowerCase()))) {
      setFound([])
      return undefined
    }
    const before = typed.slice(0, last?.index)
    const controller = new AbortController()
    const timer = setTimeout(() => {
      read<Suggestions>(onBoard(`suggest?${new URLSearchParams({ q: word })}`), controller.signal).then(
        ({ suggestions }) => {
          const fitting = suggestions.filter(({ kind }) => field === undefined || kind === field.toLowerCase())
          setFound(fitting.map(({ kind, text }) => before + term(kind, text)))
        },
        // A search works without them.
        () => undefined,
      )
    }, PAUSE_MS)
    return () => {
      clearTimeout(timer)
      controller.abort()
    }
  }, [typed])
  return [found, setTyped]
}
