#ifndef BATON_ENGINE_JOB_TABLE_H_
#define BATON_ENGINE_JOB_TABLE_H_

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "baton/v1/leg.pb.h"
#include "common/check.h"
#include "common/str_cat.h"
#include "engine/engine.h"
#include "engine/job.h"
#include "engine/planner.h"

namespace baton {

// The jobs of a scheduler and the step that some of them are part of: what is the same for prompts and for
// answers. `JobType` derives from Job. Part of a state machine: no thread, no clock.
//
//   Add --> living --End--> gone           at once, or, for a job that is part of the running step, with it
//             |  ^
//   StartStep |  | FinishStep              one step at a time
//             v  |
//           in the step
template <typename JobType>
class JobTable {
 public:
  struct Options {
    uint32_t token_budget = 1;      // rows of one step at most
    uint32_t min_chunk_tokens = 1;  // the step-time bound never cuts the budget below this
    uint32_t chunk_tokens = 1;      // rows of one sequence in one step
    absl::Duration step_target;
    absl::Duration progress_interval;
  };
  struct Done {
    JobType* job;
    const SequenceResult* result;
  };

  explicit JobTable(const Options& options)
      : options_(options), budget_(options.step_target, options.min_chunk_tokens, options.token_budget) {}

  // Neither its leg nor its transfer is in the table.
  JobType& Add(std::unique_ptr<JobType> job, absl::Time now) {
    JobType& added = *job;
    by_transfer_.emplace(added.transfer_id, &added);
    jobs_.emplace(added.leg, std::move(job));
    next_progress_ = std::min(next_progress_, now + options_.progress_interval);
    return added;
  }
  // Forgets the job, at once or with the step that it is part of.
  void End(JobType& job) {
    job.ended = true;
    if (job.step_rows > 0) return;
    by_transfer_.erase(job.transfer_id);
    jobs_.erase(job.leg);
  }

  // The living job, or null.
  JobType* Find(LegId leg) const {
    const auto it = jobs_.find(leg);
    return it == jobs_.end() || it->second->ended ? nullptr : it->second.get();
  }
  JobType* Find(const TransferId& id) const {
    const auto it = by_transfer_.find(id);
    return it == by_transfer_.end() || it->second->ended ? nullptr : it->second;
  }
  // Whether there is still anything of this transfer.
  bool Knows(const TransferId& id) const { return by_transfer_.contains(id); }
  // Living jobs that fulfil `wanted`, in the order of their arrival.
  template <typename Wanted>
  std::vector<JobType*> All(Wanted wanted) const {
    std::vector<JobType*> found;
    for (const auto& [leg, job] : jobs_) {
      if (!job->ended && wanted(*job)) found.push_back(job.get());
    }
    return found;
  }
  std::vector<JobType*> All() const {
    return All([](const JobType&) { return true; });
  }
  std::vector<JobType*> OfRequest(const std::string& request_id) const {
    return All([&](const JobType& job) { return job.request_id == request_id; });
  }
  std::vector<JobType*> Late(absl::Time now) const {
    return All([now](const JobType& job) { return job.deadline <= now; });
  }
  // With those that only wait for the running step.
  size_t size() const { return jobs_.size(); }

  bool stepping() const { return !step_.empty(); }
  // Plans a step of `candidates` and begins it, unless there is nothing to compute. The budget is at least
  // `least_rows`. The plan is valid until FinishStep.
  std::optional<StepPlan> StartStep(const std::vector<JobType*>& candidates, uint32_t least_rows,
                                    absl::Time now) {
    BATON_CHECK(!stepping());
    std::vector<PlannedSequence> planned;
    for (const JobType* job : candidates) planned.push_back(job->sequence.Planned());
    const std::vector<uint32_t> rows = PlanRows(
        planned,
        {.token_budget = std::max(budget_.budget(), least_rows), .chunk_tokens = options_.chunk_tokens});
    StepPlan plan;
    for (size_t i = 0; i < rows.size(); ++i) {
      if (rows[i] == 0) continue;
      JobType* job = candidates[i];
      job->step_rows = rows[i];
      step_.push_back(job);
      plan.sequences.push_back(job->sequence.MakeStep(rows[i], job->may_sample));
    }
    if (step_.empty()) return std::nullopt;
    step_started_ = now;
    batch_size_ = static_cast<uint32_t>(step_.size());
    return plan;
  }
  const std::vector<JobType*>& step() const { return step_; }  // in the order of the plan
  // The step ran. What each living job of it got, in the order of the plan; the others are gone now.
  std::vector<Done> FinishStep(const StepResult& result, absl::Time now) {
    BATON_CHECK(result.sequences.size() == step_.size());
    ++steps_;
    uint32_t rows = 0;
    std::vector<Done> done;
    const std::vector<JobType*> step = std::exchange(step_, {});
    for (size_t i = 0; i < step.size(); ++i) {
      JobType& job = *step[i];
      rows += job.step_rows;
      job.sequence.OnStepDone(std::exchange(job.step_rows, 0), result.sequences[i].sampled);
      if (job.ended) {
        End(job);
      } else {
        done.push_back({&job, &result.sequences[i]});
      }
    }
    OnStepTime(rows, now - step_started_);
    return done;
  }
  // A step of `rows` rows took so long: bounds the next one.
  void OnStepTime(uint32_t rows, absl::Duration took) { budget_.OnStep(rows, took); }

  // When a deadline passes or progress is due.
  absl::Time next_timer() const {
    absl::Time next = jobs_.empty() ? absl::InfiniteFuture() : next_progress_;
    for (const auto& [leg, job] : jobs_) {
      if (!job->ended) next = std::min(next, job->deadline);
    }
    return next;
  }
  // Whether every open leg is to hear of its job's progress now.
  bool TakeProgressDue(absl::Time now) {
    if (now < next_progress_) return false;
    next_progress_ = jobs_.empty() ? absl::InfiniteFuture() : now + options_.progress_interval;
    return true;
  }
  v1::Progress ProgressOf(const JobType& job) const {
    v1::Progress progress;
    progress.set_steps(static_cast<double>(steps_));
    progress.set_computed_tokens(job.sequence.computed());
    return progress;
  }

  // The part of the load that does not depend on the role.
  WorkerLoad load() const {
    WorkerLoad load;
    load.batch_size = batch_size_;
    load.steps = steps_;
    return load;
  }
  absl::Status CheckInvariants() const {
    if (by_transfer_.size() != jobs_.size())
      return absl::InternalError("jobs and transfers differ in number");
    for (const auto& [leg, job] : jobs_) {
      const bool in_step = std::find(step_.begin(), step_.end(), job.get()) != step_.end();
      if (in_step != (job->step_rows > 0))
        return absl::InternalError(StrCat("leg ", leg, " disagrees with the step"));
      if (job->ended && !in_step)
        return absl::InternalError(StrCat("leg ", leg, " has ended and is still here"));
    }
    return absl::OkStatus();
  }

 private:
  const Options options_;
  ChunkBudget budget_;
  std::map<LegId, std::unique_ptr<JobType>> jobs_;  // in the order of arrival
  std::unordered_map<TransferId, JobType*> by_transfer_;
  std::vector<JobType*> step_;  // in the order of the running plan; empty: no step runs
  absl::Time step_started_;
  uint32_t batch_size_ = 0;
  uint64_t steps_ = 0;
  absl::Time next_progress_ = absl::InfiniteFuture();
};

}  // namespace baton

#endif  // BATON_ENGINE_JOB_TABLE_H_
