/** The completion script for bash, with or without the package bash-completion. */
import { type CompletionCommand, type CompletionFlag, valueOptions } from './tree.ts'

export function bashScript(branches: readonly CompletionCommand[]): string {
  return `# jobboard completion for bash: source <(jobboard completion bash)
_jobboard() {
  local word="\${COMP_WORDS[COMP_CWORD]}" before="" path="" i each
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; i++)); do
    each="\${COMP_WORDS[i]}"
    if [[ -n $before ]]; then before=""; continue; fi
    case "$each" in
      ${valueOptions(branches).join('|')}) before="$each" ;;
      -*) ;;
      *) case "$path $each" in
${branches
  .filter(({ path }) => path !== '')
  .map(({ path }) => `        ${quote(`${parentPath(path)} ${lastWord(path)}`)}) path=${quote(path)} ;;`)
  .join('\n')}
        esac ;;
    esac
  done
  if [[ -n $before ]]; then
    case "$path $before" in
${branches.flatMap((branch) => branch.options.flatMap((flag) => valueLines(branch, flag))).join('\n')}
    esac
    return
  fi
  case "$path" in
${branches.map(branchLine).join('\n')}
  esac
}
complete -F _jobboard jobboard
`
}

function valueLines({ path }: CompletionCommand, { names, words, file }: CompletionFlag): string[] {
  if (!file && words.length === 0) return []
  const offer = file ? 'compgen -f -- "$word"' : `compgen -W ${quote(words.join(' '))} -- "$word"`
  return names.map((name) => `      ${quote(`${path} ${name}`)}) mapfile -t COMPREPLY < <(${offer}) ;;`)
}

function branchLine({ path, commands, options, words }: CompletionCommand): string {
  const plain = [...commands.map(({ name }) => name), ...words].join(' ')
  const flags = options.flatMap(({ names }) => names).join(' ')
  const offer = `if [[ $word == -* ]]; then mapfile -t COMPREPLY < <(compgen -W ${quote(flags)} -- "$word"); else mapfile -t COMPREPLY < <(compgen -W ${quote(plain)} -- "$word"); fi`
  return `    ${quote(path)}) ${offer} ;;`
}

function parentPath(path: string): string {
  return path.split(' ').slice(0, -1).join(' ')
}

function lastWord(path: string): string {
  return path.split(' ').at(-1) ?? ''
}

/** Quotes a text. Names and words of this program have no quotes in them. */
function quote(text: string): string {
  return `'${text}'`
}
