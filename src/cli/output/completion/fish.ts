/** The completion script for fish: one line for each word, with its condition. */
import { type CompletionCommand, type CompletionFlag, valueOptions } from './tree.ts'

export function fishScript(branches: readonly CompletionCommand[]): string {
  const lines = branches.flatMap((branch) => [
    ...branch.commands.map(({ name, summary }) => line(branch, ['-a', quote(name), '-d', quote(summary)])),
    ...branch.words.map((word) => line(branch, ['-a', quote(word)])),
    ...branch.options.map((flag) => line(branch, flagWords(flag))),
  ])
  const paths = branches.flatMap(({ path }) => (path === '' ? [] : [path]))
  return `# jobboard completion for fish: put it into ~/.config/fish/completions/jobboard.fish
function __jobboard_at
  set -l where
  set -l before 0
  for each in (commandline -opc)[2..-1]
    if test $before = 1
      set before 0
    else if contains -- $each ${valueOptions(branches).join(' ')}
      set before 1
    else if contains -- (string join ' ' $where $each) ${paths.map(quote).join(' ')}
      set -a where $each
    end
  end
  test "$where" = "$argv"
end
complete -c jobboard -f
${lines.join('\n')}
`
}

function line({ path }: CompletionCommand, words: readonly string[]): string {
  const here = path === '' ? '__jobboard_at' : `__jobboard_at ${path}`
  return `complete -c jobboard -n ${quote(here)} ${words.join(' ')}`
}

function flagWords({ names, summary, takesValue, words, file }: CompletionFlag): string[] {
  const named = names.flatMap((name) => (name.startsWith('--') ? ['-l', name.slice(2)] : ['-s', name.slice(1)]))
  const value = words.length > 0 ? ['-x', '-a', quote(words.join(' '))] : file ? ['-r', '-F'] : takesValue ? ['-x'] : []
  return [...named, ...value, '-d', quote(summary)]
}

function quote(text: string): string {
  return `'${text.replaceAll('\\', '\\\\').replaceAll("'", String.raw`\'`)}'`
}
