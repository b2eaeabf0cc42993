/** The completion script for zsh: commands and options with their descriptions. */
import { type CompletionCommand, type CompletionFlag, valueOptions } from './tree.ts'

export function zshScript(branches: readonly CompletionCommand[]): string {
  return `#compdef jobboard
# jobboard completion for zsh: put it into a folder of $fpath as _jobboard
_jobboard() {
  local current="\${words[CURRENT]}" before="" where="" each i
  local -a offered
  for ((i = 2; i < CURRENT; i++)); do
    each="\${words[i]}"
    if [[ -n $before ]]; then before=""; continue; fi
    case "$each" in
      ${valueOptions(branches).join('|')}) before="$each" ;;
      -*) ;;
      *) case "$where $each" in
${branches
  .filter(({ path }) => path !== '')
  .map(({ path }) => `        ${quote(withParent(path))}) where=${quote(path)} ;;`)
  .join('\n')}
        esac ;;
    esac
  done
  if [[ -n $before ]]; then
    case "$where $before" in
${branches.flatMap((branch) => branch.options.flatMap((flag) => valueLines(branch, flag))).join('\n')}
    esac
    return
  fi
  case "$where" in
${branches.map(branchLines).join('\n')}
  esac
}
if [[ "$funcstack[1]" == _jobboard ]]; then _jobboard "$@"; else compdef _jobboard jobboard; fi
`
}

/**
 * Returns the words of a command, for example `trash` and `purge`, relative to the place where the first was
 * recognized.
 */
function withParent(path: string): string {
  const words = path.split(' ')
  return `${words.slice(0, -1).join(' ')} ${words.at(-1)}`
}

function valueLines({ path }: CompletionCommand, { names, words, file }: CompletionFlag): string[] {
  if (!file && words.length === 0) return []
  const offer = file ? '_files' : `compadd -- ${words.join(' ')}`
  return names.map((name) => `      ${quote(`${path} ${name}`)}) ${offer} ;;`)
}

function branchLines({ path, commands, options, words }: CompletionCommand): string {
  const flags = options.flatMap(({ names, summary }) => names.map((name) => toDescription(name, summary)))
  const plain = [...commands.map(({ name, summary }) => toDescription(name, summary)), ...words.map(quote)]
  return `    ${quote(path)})
      if [[ $current == -* ]]; then
        offered=(${flags.join(' ')})
        _describe -o option offered
      else
        offered=(${plain.join(' ')})
        _describe command offered
      fi ;;`
}

function toDescription(name: string, summary: string): string {
  return quote(`${name.replaceAll(':', '\\\\:')}:${summary}`)
}

function quote(text: string): string {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`
}
