/** Source code with one marked line. */
export function SourceCode({ code, hot }: { code: string; hot: number }) {
  return (
    <pre class="src" tabIndex={0}>
      {code.split("\n").map((line, i) => (
        <span key={i} class={i === hot ? "hot" : ""}>
          <i>{i === hot ? "▸" : ""}</i> {line}
        </span>
      ))}
    </pre>
  );
}
