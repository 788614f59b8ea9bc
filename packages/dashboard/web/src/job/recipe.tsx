// What a training runs: program, parameters, image, code, data, variables and hardware.

import type { ComponentChildren } from "preact";
import type { Job, Membership, Node, Recipe } from "../model";
import { type Fact, Facts, RuntimeLink } from "../parts";
import { Copy } from "../shell/copy";
import { commandText, visible } from "./command";

export function RecipeView({ job, nodes }: { job: Job; nodes: readonly Node[] }) {
  const { recipe } = job;
  const words = [...recipe.command, ...recipe.args].map(visible);
  const image = recipe.image || nodes.find(({ image }) => image)?.image || "";
  const facts: Fact[] = [
    ["Runtime", <RuntimeLink of={job} />],
    ["Nodes", job.nodes ?? ""],
    ["GPUs per node", job.devicesPerNode || ""],
    ["Resources per node", Object.entries(recipe.resources).map(([name, amount]) => `${name} ${amount}`).join(", ")],
    ["Processes per node", recipe.processes],
    ["Image", image && <Text>{image}</Text>],
    ["Code", codeOf(job)],
    ["Git revision", recipe.revision && <Text title={recipe.revision}>{shortRevision(recipe.revision)}</Text>],
    ...recipe.data.map(([title, uri]): Fact => [title === "model" ? "Model" : "Data", <Text>{uri}</Text>]),
    ["Owner", job.owner],
  ];
  const parameters = besideSweep(recipe.parameters, job.trial);
  const title = job.ended ? "What ran" : "What runs";
  return (
    <section class="recipe" aria-label={title}>
      <h2>{title}</h2>
      {words.length > 0 ? (
        <div class="command-line">
          <code tabIndex={0} role="group" aria-label="Command">
            {commandText(words)}
          </code>
          <Copy text={commandText(words)} what="the command" />
        </div>
      ) : (
        <p class="quiet">The command is that of the runtime; the tab Objects has it.</p>
      )}
      {parameters.length > 0 && (
        <dl class="parameters" aria-label="Parameters" tabIndex={0}>
          {parameters.map(([name, value]) => (
            <div key={name}>
              <dt>{visible(name)}</dt>
              <dd>{visible(value) || "on"}</dd>
            </div>
          ))}
        </dl>
      )}
      <Facts of={facts} />
      {recipe.env.length > 0 && (
        <details class="fold">
          <summary>
            {recipe.env.length} {recipe.env.length === 1 ? "variable" : "variables"}
          </summary>
          <dl class="variables">
            {recipe.env.map(({ name, value, origin }) => (
              <div key={name}>
                <dt>{visible(name)}</dt>
                <dd>{origin ? <span class="quiet">from {visible(origin)}</span> : visible(value)}</dd>
              </div>
            ))}
          </dl>
        </details>
      )}
    </section>
  );
}

function Text({ children, title }: { children: string; title?: string }) {
  return (
    <span class="mono" title={title}>
      {visible(children)}
    </span>
  );
}

function codeOf({ recipe }: Job): ComponentChildren {
  if (recipe.repository) return <Text>{recipe.repository}</Text>;
  return recipe.isPacked ? "sent with the TrainJob" : "";
}

/** The first letters of a commit, which is long, and whether the code differs from it; other names of revisions are whole. */
function shortRevision(revision: string): string {
  const [, commit, dirty] = /^([0-9a-f]{40}(?:[0-9a-f]{24})?)(-dirty)?$/.exec(revision) ?? [];
  return commit ? `${commit.slice(0, 12)}${dirty ? ", with local changes" : ""}` : revision;
}

/** The parameters without those that a trial has of its sweep, which stand above. */
export function besideSweep(parameters: Recipe["parameters"], trial: Membership | null): Recipe["parameters"] {
  const plain = (name: string) => name.replaceAll(/[^a-z0-9]/gi, "_").toLowerCase();
  const known = new Map(trial?.parameters.map(([name, value]) => [plain(name), value]));
  return parameters.filter(([name, value]) => known.get(plain(name)) !== value);
}
